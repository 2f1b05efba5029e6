/* Drives the accelerator through one small multiplication and compares every word of the result.
   @ORIGIN@

   A system gives the functions of struct fiberloom_platform and calls fiberloom_example. On Linux, with registers and memory
   that /dev/mem may map and that no cache holds, compile with -DFIBERLOOM_MAIN and give both physical addresses:

       cc -std=c99 -O2 -DFIBERLOOM_MAIN -o example fiberloom_example.c && ./example 0xa0000000 0x70000000 */
#ifdef FIBERLOOM_MAIN
#define _DEFAULT_SOURCE
#define _FILE_OFFSET_BITS 64
#endif
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fiberloom_example.h"
#include "fiberloom_regs.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define STATUS(field) (FIBERLOOM_STATUS_##field##_MASK)

static uint64_t read64(const struct fiberloom_platform *platform, uint32_t offset)
{
    /* The lower half first: reading it keeps the upper half of the same moment. */
    uint64_t low = platform->read(platform->context, offset);
    return (uint64_t)platform->read(platform->context, offset + 4) << 32 | low;
}

static void write64(const struct fiberloom_platform *platform, uint32_t offset, uint64_t value)
{
    platform->write(platform->context, offset, (uint32_t)value);
    platform->write(platform->context, offset + 4, (uint32_t)(value >> 32));
}

static void say(const struct fiberloom_platform *platform, const char *format, ...)
{
    char line[200];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    platform->print(platform->context, line);
}

static int fail(const struct fiberloom_platform *platform, const char *what, uint64_t found, uint64_t expected)
{
    say(platform, "FAIL: %s is 0x%" PRIx64 ", not 0x%" PRIx64, what, found, expected);
    return 1;
}

/* An address of the example where the platform has the arrays. */
static uint64_t moved(const struct fiberloom_platform *platform, uint64_t address)
{
    return address - EXAMPLE_BASE + platform->memory_base;
}

static int fill_memory(const struct fiberloom_platform *platform)
{
    for (size_t n = 0; n < COUNT(example_regions); n++) {
        const struct example_region *region = &example_regions[n];
        uint8_t *memory = platform->memory(platform->context, moved(platform, region->address), region->bytes);
        if (!memory) return fail(platform, "memory at this address", region->address, region->address);
        memset(memory, 0, region->bytes);
        memcpy(memory, example_content + region->first, region->filled);
    }
    return 0;
}

static void configure(const struct fiberloom_platform *platform)
{
    for (size_t n = 0; n < COUNT(example_settings); n++) {
        const struct example_setting *setting = &example_settings[n];
        uint64_t value = setting->is_address ? moved(platform, setting->value) : setting->value;
        if (setting->bits == 64)
            write64(platform, setting->offset, value);
        else
            platform->write(platform->context, setting->offset, (uint32_t)value);
    }
}

/* Starts the run and waits for its end. */
static int run(const struct fiberloom_platform *platform)
{
    uint32_t status = 0;
    platform->write(platform->context, FIBERLOOM_CONTROL,
                    FIBERLOOM_CONTROL_START_MASK | FIBERLOOM_CONTROL_IRQ_ENABLE_MASK);
    for (uint64_t n = 0; n < EXAMPLE_BUDGET && !(status & STATUS(DONE)); n++) {
        platform->wait(platform->context);
        status = platform->read(platform->context, FIBERLOOM_STATUS);
    }
    if (!(status & STATUS(DONE))) return fail(platform, "STATUS.done", 0, 1);
    platform->write(platform->context, FIBERLOOM_STATUS, STATUS(IRQ_PENDING));
    if (status & STATUS(ERROR)) {
        say(platform, "FAIL: error %" PRIu32 ", detail 0x%" PRIx64, platform->read(platform->context, FIBERLOOM_ERROR_CODE),
            read64(platform, FIBERLOOM_ERROR_DETAIL_LO));
        return 1;
    }
    return 0;
}

static uint64_t setting_of(uint32_t offset)
{
    for (size_t n = 0; n < COUNT(example_settings); n++)
        if (example_settings[n].offset == offset) return example_settings[n].value;
    return 0;
}

/* Compares words of C in memory. */
static int compare(const struct fiberloom_platform *platform, const char *what, uint32_t offset, const uint32_t *expected,
                   size_t count)
{
    uint64_t address = moved(platform, setting_of(offset));
    const uint8_t *memory = platform->memory(platform->context, address, 4 * count);
    for (size_t n = 0; n < count; n++) {
        uint32_t word;
        memcpy(&word, memory + 4 * n, 4);
        if (word != expected[n]) return fail(platform, what, word, expected[n]);
    }
    return 0;
}

int fiberloom_example(const struct fiberloom_platform *platform)
{
    uint32_t identity = platform->read(platform->context, FIBERLOOM_ID);
    uint32_t version = platform->read(platform->context, FIBERLOOM_VERSION);
    if (identity != FIBERLOOM_IDENTITY) return fail(platform, "ID", identity, FIBERLOOM_IDENTITY);
    if (version >> 16 != FIBERLOOM_MAP_VERSION >> 16) return fail(platform, "VERSION", version, FIBERLOOM_MAP_VERSION);
    if (fill_memory(platform)) return 1;
    configure(platform);
    if (run(platform)) return 1;
    for (size_t n = 0; n < COUNT(example_results); n++) {
        const struct example_setting *result = &example_results[n];
        uint64_t found = result->bits == 64 ? read64(platform, result->offset)
                                            : platform->read(platform->context, result->offset);
        if (found != result->value) return fail(platform, "a register of the result", found, result->value);
    }
    if (compare(platform, "a row pointer of C", FIBERLOOM_C_POINTERS_LO, example_c, EXAMPLE_ROWS + 1)) return 1;
    if (compare(platform, "a nonzero of C", FIBERLOOM_C_ELEMENTS_LO, example_c + EXAMPLE_ROWS + 1,
                COUNT(example_c) - EXAMPLE_ROWS - 1))
        return 1;
    say(platform, "PASS: " EXAMPLE_PRODUCT " in %" PRIu64 " cycles, %zu words compared",
        read64(platform, FIBERLOOM_COUNTER_BASE), COUNT(example_c));
    return 0;
}

#ifdef FIBERLOOM_MAIN
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct mapped {
    volatile uint32_t *registers;
    uint8_t *memory;
    uint64_t base;
};

static uint32_t read_mapped(void *context, uint32_t offset)
{
    return fiberloom_read(((struct mapped *)context)->registers, offset);
}

static void write_mapped(void *context, uint32_t offset, uint32_t value)
{
    fiberloom_write(((struct mapped *)context)->registers, offset, value);
}

static uint8_t *memory_mapped(void *context, uint64_t address, size_t bytes)
{
    (void)bytes;
    return ((struct mapped *)context)->memory + (address - ((struct mapped *)context)->base);
}

static void wait_mapped(void *context)
{
    (void)context;
    usleep(1000);
}

static void print_mapped(void *context, const char *line)
{
    (void)context;
    puts(line);
}

int main(int count, char **words)
{
    struct mapped mapped;
    struct fiberloom_platform platform = {&mapped, read_mapped, write_mapped, memory_mapped, wait_mapped, print_mapped, 0};
    uint64_t end = 0;
    int device = open("/dev/mem", O_RDWR | O_SYNC);
    if (count != 3 || device < 0) {
        fprintf(stderr, "usage, with rights to /dev/mem: %s ADDRESS-OF-REGISTERS ADDRESS-OF-MEMORY\n", words[0]);
        return 2;
    }
    for (size_t n = 0; n < COUNT(example_regions); n++)
        if (example_regions[n].address + example_regions[n].bytes > end)
            end = example_regions[n].address + example_regions[n].bytes;
    mapped.base = platform.memory_base = strtoull(words[2], NULL, 0);
    mapped.registers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, device, (off_t)strtoull(words[1], NULL, 0));
    mapped.memory = mmap(NULL, end - EXAMPLE_BASE, PROT_READ | PROT_WRITE, MAP_SHARED, device, (off_t)mapped.base);
    if (mapped.registers == MAP_FAILED || mapped.memory == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    return fiberloom_example(&platform);
}
#endif
