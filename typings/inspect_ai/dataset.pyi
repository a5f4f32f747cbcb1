from collections.abc import Mapping, Sequence

class Sample:
    def __init__(self, *, input: str, target: Sequence[str], id: str, metadata: Mapping[str, object]) -> None: ...

class MemoryDataset:
    def __init__(self, samples: Sequence[Sample]) -> None: ...
