"""The units of a machine, by the names under which its parts refer to them."""

from dataclasses import dataclass

from ..accessor.a import AccessorA
from ..accessor.b import AccessorB
from ..accessor.c import AccessorC
from ..accessor.lookup import FiberLookup
from ..accessor.segment_stream import SegmentStreamer
from ..buffer.banked_sram import BankedSram
from ..lib.stream import StreamQueue, StreamRegister
from ..memory.memory_engine import MemoryEngine
from ..network.collector import Collector
from ..network.dispatcher import Dispatcher
from ..network.memory_fetch import MemoryFetch
from ..pe.gustavson import GustavsonPe
from ..tiling.assembly import AssemblyPass
from ..tiling.controller import TilingController
from ..tiling.run_control import RunControl

__all__ = ["Units"]


@dataclass(frozen=True)
class Units:
    """What a :class:`Machine` consists of. ``reentry`` streams partial rows of C, ``streamer`` fibers of B."""

    control: RunControl
    controller: TilingController
    assembly: AssemblyPass
    a: AccessorA
    b: AccessorB
    c: AccessorC
    selections: StreamRegister
    lookup: FiberLookup
    leaf_queue: StreamQueue
    streamer: SegmentStreamer
    reentry: SegmentStreamer
    dispatcher: Dispatcher
    collector: Collector
    fetch: MemoryFetch
    sram: BankedSram
    engine: MemoryEngine
    pes: tuple[GustavsonPe, ...]
