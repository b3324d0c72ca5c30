# Tasks of a clone; `make setup` first. Recipes use .venv if there is one.
PATH := $(CURDIR)/.venv/bin:$(PATH)
export PATH

.PHONY: setup test nightly mutations lint docs gallery dist
setup:
	python3 -m venv .venv && pip install -e '.[test,lint,docs,bench]'
test:
	python -m pytest
nightly:
	python -m pytest -m nightly
mutations:
	python -m tests.mutations
lint:
	ruff check . && ruff format --check . && mypy && lint-imports
docs:
	GRAPHCOUPLE_GALLERY=False python -m sphinx -W -n -q --keep-going docs docs/_build/html
gallery:
	python -m sphinx -W -n -q --keep-going docs docs/_build/html
dist:
	python -m build && twine check --strict dist/*
