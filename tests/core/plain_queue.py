"""A queue of one model as a plain list: the slow reference that the core is compared with.

Written from the contract alone: keys, levels, timeouts that reject or delay, eager or lazy.
Nothing is shared with gesim.core but the values of requests.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Entry:
    id: int
    enqueue_ns: int
    key: int
    level: int
    items: int
    expires_ns: int | None  # None: none, or past
    action: str
    lazy: bool
    delayed: int | None = None  # position among the delayed ones

    def place(self):
        late = self.delayed is not None
        return (self.key, late, self.delayed if late else self.enqueue_ns, self.id)


class PlainQueue:
    def __init__(self, limit):
        self.limit = limit
        self.entries: list[Entry] = []
        self.delays = 0
        self.gone: list[tuple[int, int, str]] = []  # (id, at, why)

    def sort(self):
        self.entries.sort(key=Entry.place)

    def push(self, entry):
        self.entries.append(entry)
        self.sort()

    def _time_out(self, entry, at_ns):
        entry.expires_ns = None
        if entry.action == "delay":
            self.delays += 1
            entry.delayed = self.delays
            self.sort()
        else:
            self.entries.remove(entry)
            self.gone.append((entry.id, at_ns, "expired"))

    def expire(self, now_ns):
        due = [
            e
            for e in self.entries
            if not e.lazy and e.expires_ns is not None and e.expires_ns < now_ns
        ]
        for entry in sorted(due, key=lambda e: (e.expires_ns, e.id)):
            self._time_out(entry, entry.expires_ns + 1)

    def expire_lazily(self, now_ns, forming):
        """From the head, until one full batch of unexpired requests has been met.

        Nothing forms while no instance is free: then all are met, but delays wait.
        """
        room, due = self.limit if forming else 1 << 60, []
        for entry in self.entries:
            if entry.lazy and entry.expires_ns is not None and entry.expires_ns < now_ns:
                if forming or entry.action == "reject":
                    due.append(entry)
            else:
                room -= entry.items
                if room <= 0:
                    break
        for entry in due:
            self._time_out(entry, now_ns)

    def take(self, count, level=0):
        chosen = [e for e in self.entries if level in (0, e.level)][:count]
        for entry in chosen:
            self.entries.remove(entry)
        return [e.id for e in chosen]
