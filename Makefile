# Tasks of a clone; `make setup` first. Recipes use .venv if there is one.
PATH := $(CURDIR)/.venv/bin:$(PATH)
export PATH

.PHONY: setup test nightly mutations lint docs links shots gallery bench dist
setup:
	python3 -m venv .venv && pip install -e '.[test,lint,docs,bench]'
test:
	python -m pytest
nightly:
	python -m pytest -m nightly
mutations:
	python -m tests.mutations
lint:
	ruff check . && ruff format --check . && mypy && mypy --strict --follow-imports=silent tests/typed.py && lint-imports
docs:
	GRAPHCOUPLE_GALLERY=none python -m sphinx -W -n -q --keep-going docs docs/_build/html
links: docs
	python docs/_links.py docs/_build/html
shots: docs
	for width in 1280 400; do for page in index start howto/choose reference/methods; do \
	chromium --headless --no-sandbox --hide-scrollbars --window-size=$$width,2000 \
	--screenshot=docs/_build/$$(basename $$page)-$$width.png docs/_build/html/$$page.html; done; done
gallery:
	python -m sphinx -W -n -q --keep-going docs docs/_build/html
bench:
	python benchmarks/startup.py && pytest benchmarks/inner_loops.py
dist:
	python -m build && twine check --strict dist/*
