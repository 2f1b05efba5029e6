"""Random designs on random operands for as long as asked, every engine compared with every other."""
