"""The benchmarks as tasks of inspect_ai: `inspect eval kg_sextant/qald10 --model … -T data=qald_10-en.json`.

They need the extra `kg-sextant[eval]`; nothing else of the package imports them.
"""
