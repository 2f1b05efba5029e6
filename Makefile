# Every target works from nothing: `setup` makes the virtual environment when it is missing or out of date.
# Paths are relative throughout, so the project's folder may have spaces in its name.

PYTHON ?= python3
CONFIG ?= edge
OPERAND ?= pyamg:bar
TARGET ?= generic
# What runs the smoke bench: icarus or verilator.
SIMULATOR ?= icarus
OPERANDS ?=
BEFORE ?= f46f11b4
# What `make papers` takes without OPERANDS.
GENERATED := rmat:12:8:seed=1 banded:4000:10:density=0.5:seed=1
TESTS ?= tests
MINUTES ?= 10
MUTANTS ?= 200
# Half of them are uniform.
ARITH_PAIRS ?= 20000000
# Unset PYTEST_JOBS for all cores.
PYTEST_JOBS ?= auto

BIN := .venv/bin
STAMP := .venv/.fiberloom-setup
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup setup-formal run test test-quick verilog smoke sim sim-full arith coverage synth bench bench-bytes bench-sim bench-tiling bench-kernels bench-tensors bench-formats bench-sage bench-engines bench-scaling bench-analysis papers papers-sparseloop bench-timing bench-area bench-cells formal formal-faults mutate soak fpga docs lint lint-python lint-verilog format clean distclean solver bench-note

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "CONFIG=$(CONFIG) OPERAND=$(OPERAND) TARGET=$(TARGET) can be set on the command line."

setup: ## make .venv with fiberloom and every tool in it (nothing to download the second time)
	@$(PYTHON) .ci/make_venv.py $(BIN)/python $(STAMP)

setup-formal: setup ## also SymbiYosys and its solver
	@$(PYTHON) .ci/make_venv.py $(BIN)/python $(STAMP)-formal formal

run: setup ## the demonstration: a real matrix through the generated hardware, every value checked
	@$(BIN)/python -m sw run $(OPERAND) --config $(CONFIG) --engine rtl --out out/run

test: setup solver ## all tests; the last line says which could not run
	@$(BIN)/python -m pytest -n $(PYTEST_JOBS) --dist worksteal $(TESTS)

test-quick: setup solver ## the tests that take seconds
	@$(BIN)/python -m pytest -n $(PYTEST_JOBS) --dist worksteal -m "not slow" $(TESTS)

verilog: setup ## the accelerator as Verilog in build/verilog/CONFIG
	@$(BIN)/python -m sw generate --config $(CONFIG) --out build/verilog/$(CONFIG)

smoke: setup ## the accelerator as Verilog and its smoke bench run, SIMULATOR=icarus|verilator
	@$(BIN)/python -m sw generate --config $(CONFIG) --out build/verilog/$(CONFIG) --smoke $(SIMULATOR)

sim: setup solver ## a small matrix through the smallest accelerator in every engine, and the bus benches
	@for engine in golden model rtl; do \
	    echo "== $$engine"; \
	    $(BIN)/python -m sw run pyamg:knot --config tiny --engine $$engine --out out/sim-$$engine || exit; \
	done
	@if [ -d tests/verif ]; then $(BIN)/python -m pytest -n $(PYTEST_JOBS) --dist worksteal tests/verif; fi

sim-full: setup solver ## every bench, the long ones too, every planted fault and every lint waiver
	@FIBERLOOM_LONG_BENCHES=1 $(BIN)/python -m pytest -n $(PYTEST_JOBS) --dist worksteal tests/verif tests/rtl tests/gen

arith: setup ## every operator against exact arithmetic, ARITH_PAIRS=20000000 random pairs each
	@FIBERLOOM_ARITH_PAIRS=$(ARITH_PAIRS) $(BIN)/python -m pytest tests/verif/test_arithmetic.py --durations=1

coverage: setup ## every bench, and the page of the situations that they reached
	@rm -rf build/coverage
	@FIBERLOOM_COVERAGE_FOLDER=build/coverage $(BIN)/python -m pytest -n $(PYTEST_JOBS) --dist worksteal tests/verif/test_benches.py
	@$(BIN)/python -m verif.coverage --page docs/coverage.md

synth: setup ## cells of each block (Yosys), TARGET=generic|ecp5|xilinx|ice40
	@$(BIN)/python -m sw synth --config $(CONFIG) --target $(TARGET)

bench: setup ## cycles against the roofline on real matrices, and the model tier beside them; CONFIG, OPERANDS="..."
	@$(BIN)/python -m benchmarks.matrices --config $(CONFIG) $(OPERANDS)
	@$(BIN)/python -m benchmarks.model

bench-bytes: setup ## cycles and bytes of auto beside the commit BEFORE orders of rows and planned places; OPERANDS="..."
	@$(BIN)/python -m benchmarks.bytes_moved --before $(BEFORE) $(OPERANDS)

bench-sim: setup bench-note ## speed, build time and memory of the compiled simulation, beside a cocotb-driven run
	@$(BIN)/python -m benchmarks.simulation

bench-tiling: setup ## every tiling policy in the model tier, ExTensor's variants, HYTE's comparison, OPERANDS="..."
	@$(BIN)/python -m benchmarks.tilings $(OPERANDS)
	@$(BIN)/python -m benchmarks.tailors $(OPERANDS)
	@$(BIN)/python -m benchmarks.hyte $(OPERANDS)

bench-kernels: setup ## F^T x F, F x D and F^T x S under every tiling, in the model tier
	@$(BIN)/python -m benchmarks.kernels

bench-tensors: setup ## TTM and MTTKRP: exact traffic of D2T2's tiles against squares, OPERANDS="TENSOR..."
	@$(BIN)/python -m benchmarks.tensors $(OPERANDS)

bench-formats: setup ## the converter between all of its formats, and the bits of each format by density; OPERANDS="..."
	@$(BIN)/python -m benchmarks.conversions --config $(CONFIG) $(OPERANDS)
	@$(BIN)/python -m benchmarks.formats

bench-sage: setup ## MINT's table III and figures 10c, 12, 13 and 14 by the cost model of formats, 14 also with a trained network
	@for part in table3 without figure10c figure12 figure13 figure14 digits; do $(BIN)/python -m benchmarks.sage $$part || exit 1; done

bench-engines: setup ## both intra-tile engines with as many MACs: cycles, bytes, MACs by cycle and LUT, and cycles by density
	@for name in edge flex_edge; do \
	    test -s build/area-$$name/synth.json || \
	    $(BIN)/python -m sw synth --config $$name --target ecp5 --out build/area-$$name --quiet || exit 1; \
	done
	@$(BIN)/python -m benchmarks.engines pairs --areas build/area-edge build/area-flex_edge
	@$(BIN)/python -m benchmarks.engines densities --plot docs/engines.svg

bench-scaling: setup ## seconds of policies and model from 10^5 to 10^8 nonzeros
	@$(BIN)/python -m benchmarks.scaling

bench-analysis: setup ## microseconds of an evaluation by the analysis: many mappings at once, and single ones
	@$(BIN)/python -m benchmarks.analysis

papers: setup ## figures of the five papers beside the papers' numbers; OPERANDS="FILE..." to make those of matrices on them
	@for name in swiftiles tailors d2t2 hyte; do $(BIN)/python -m benchmarks.$$name $(or $(OPERANDS),$(GENERATED)) || exit 1; done
	@for part in table3 figure10c figure12 figure13 figure14 digits; do $(BIN)/python -m benchmarks.sage $$part || exit 1; done
	@$(BIN)/python -m benchmarks.papers_sparseloop --plots build/papers-sparseloop
	@$(BIN)/python -m benchmarks.paper_figures

papers-sparseloop: setup ## figures of Sparseloop beside the analysis of shipped designs; PART of them
	@$(BIN)/python -m benchmarks.papers_sparseloop $(PART) --plots build/papers-sparseloop

bench-timing: setup ## clock frequency of each block on an ECP5, by place and route
	@$(BIN)/python -m benchmarks.timing --all

bench-area: setup ## parts of an accelerator by their cells on an ECP5, beside HYTE's table 3; CONFIG
	@$(BIN)/python -m sw synth --config $(CONFIG) --target ecp5 --out build/area-$(CONFIG) --quiet
	@$(BIN)/python -m benchmarks.area build/area-$(CONFIG)/synth.json

LIBERTY ?= /usr/share/qflow/tech/osu018/osu018_stdcells.lib
bench-cells: setup ## area and delay of each block in standard cells, LIBERTY=FILE (Debian: qflow-tech-osu018)
	@$(BIN)/python -m benchmarks.cells --liberty $(LIBERTY)
	@$(BIN)/python -m benchmarks.stationary --liberty $(LIBERTY)

formal: setup-formal ## the formal proofs, PROOFS="NAME..." for some of them
	@$(BIN)/python -m verif.formal $(PROOFS)

formal-faults: setup-formal ## plant faults that the proofs must refute, FAULTS="NAME..." for some of them
	@$(BIN)/python -m verif.formal --faults $(FAULTS)

mutate: setup ## break the hardware in MUTANTS=200 ways and see which tests notice, BLOCKS="pe ..." SEED=1 BROAD=1
	@$(BIN)/python -m verif.mutation $(BLOCKS) --mutants $(MUTANTS) $(if $(SEED),--seed $(SEED)) $(if $(BROAD),--broad) \
	    $(if $(BLOCKS),,--page docs/mutation.md)

soak: setup ## random designs on random operands in every engine, MINUTES=10 SEED=... (printed, else new)
	@$(BIN)/python -m verif.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

fpga: setup ## cells on an ECP5 of the smallest accelerator
	@$(BIN)/python -m sw synth --config tiny --target ecp5

docs: setup ## the manual in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "manual: site/index.html"

lint: lint-python lint-verilog ## ruff, mypy, and Verilator's -Wall on the generated Verilog

lint-python: setup ## ruff and mypy
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy

lint-verilog: setup ## Verilator's -Wall on tiny, edge, server and flex_tiny
	@printf '%s\n' tiny edge server flex_tiny | xargs -P 0 -I {} $(BIN)/python -m gen {} --out build/lint/{} --lint

format: setup ## let ruff put the source in order
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .

clean: ## remove what was generated; .venv stays
	rm -rf build out site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf

distclean: clean ## also remove .venv
	rm -rf .venv

# Tests run without the solver, and say so.
solver: setup
	@$(MAKE) --no-print-directory setup-formal || echo "The solver could not be installed: formal tests do not run."

bench-note:
	@$(BIN)/python -c "from verif.runner import libpython; libpython()" 2>/dev/null || \
	    echo "Python's shared library is not here: no cocotb bench runs. To have it: sudo apt-get install libpython3-dev"
