"""A memory that shows what a user of it may not rely on."""

from amaranth.hdl import Module, Signal

from rtl.lib.sram import SramBank

__all__ = ["Torn"]


class Torn(SramBank):
    """Bytes that are read in the cycle in which they are written read as their complement, and so do those never written."""

    def build(self, platform):
        m = Module()
        m.submodules.bank = bank = SramBank(depth=self.depth, width=self.width, granularity=self.granularity)
        for name in ("read_enable", "read_address", "write_mask", "write_address", "write_data"):
            m.d.comb += getattr(bank, name).eq(getattr(self, name))
        for n, mask in enumerate(self.write_mask):
            written, torn = Signal(self.depth, name=f"written{n}"), Signal(name=f"torn{n}")
            with m.If(mask):
                m.d.sync += written.bit_select(self.write_address, 1).eq(1)
            meets = mask & (self.write_address == self.read_address)
            m.d.sync += torn.eq(meets | ~written.bit_select(self.read_address, 1))
            part = slice(self.granularity * n, self.granularity * (n + 1))
            m.d.comb += self.read_data[part].eq(bank.read_data[part] ^ torn.replicate(self.granularity))
        return m
