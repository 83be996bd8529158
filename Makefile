# Every target creates the virtual environment .venv if it is missing. Only Python 3.11 or newer is needed.
PYTHON ?= python3
BIN := .venv/bin
SPHINX := $(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -c docs -d build/doctrees  # missing link targets are warnings
unexport PYTHONDONTWRITEBYTECODE  # without stored bytecode every process would compile PyTorch's modules again: 12 s

.PHONY: setup browser demo test test-gpu test-engines lint docs pytest fuzz container-check bench torture clean

setup: .venv/installed

# --no-compile: Python compiles modules when they are first imported. Those that every command and test needs are imported
# here, so that processes that start at the same time do not all compile them.
COMMON_MODULES := lightning, matplotlib.pyplot, numba, onnx, onnxruntime, scipy.stats, sklearn.linear_model, torch._dynamo
TEST_MODULES := beartype.door, huggingface_hub.hf_api, hypothesis.extra.numpy, PIL.TiffImagePlugin, ray, schemathesis, \
  selenium.webdriver.chrome.webdriver, sklearn.utils.estimator_checks, starlette.testclient, tifffile, typer.testing, uvicorn

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --no-compile --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -c "import $(COMMON_MODULES)" & $(BIN)/python -c "import $(TEST_MODULES)" && wait $$!
	touch $@

CHROMIUM := apt-get -qq -o DPkg::Lock::Timeout=120 install --yes --no-install-recommends chromium chromium-driver

browser:  # Chromium for the tests of the web page, where root can install it; elsewhere they are skipped with a reason
	@if command -v chromedriver >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then exit 0; fi; \
	echo "installing chromium for the tests of the web page"; export DEBIAN_FRONTEND=noninteractive; \
	{ $(CHROMIUM) || { apt-get -qq update && $(CHROMIUM); }; } >/dev/null 2>&1 \
	|| echo "chromium cannot be installed: the tests of the web page are skipped"

demo: setup
	$(BIN)/tigranet train mnist-012 -o demo/ --overwrite

test: setup  # mypy uses one core, and pytest one while it starts: side by side they take less time
	$(MAKE) --jobs=2 lint pytest

pytest: setup browser  # one process per core, one thread per process
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses logical --dist worksteal

# The tests that need a CUDA GPU, with any Python that has PyTorch for CUDA: make test-gpu GPU_PYTHON=python3
# Only their files are read, because others import packages that such a Python may not have.
GPU_PYTHON ?= $(BIN)/python

test-gpu:
	$(GPU_PYTHON) -m pytest -m gpu $$(grep --recursive --files-with-matches --include='*.py' mark.gpu tests)

ENGINES := .venv-engines/bin

# The engines need other versions of some packages, and much space: they have an environment of their own.
.venv-engines/installed: pyproject.toml constraints.txt constraints-engines.txt
	$(PYTHON) -m venv .venv-engines
	mkdir -p build
	awk -F== 'NR == FNR {replaced[$$1]; print; next} !($$1 in replaced)' constraints-engines.txt constraints.txt \
	    > build/constraints-engines.txt
	$(ENGINES)/pip install --no-compile --quiet --constraint build/constraints-engines.txt --editable '.[engines]'
	touch $@

AZURITE := azurite@3.37.0

# Azurite is a program of Node.js. Without npm the tests of az:// are skipped.
build/azurite/installed:
	mkdir -p $(@D)
	if command -v npm >/dev/null; then npm install --silent --no-save --no-audit --no-fund --prefix $(@D) $(AZURITE); fi
	touch $@

# Ray, Daft, servers for s3://, gs:// and az://, and Spark where there is Java 17
test-engines: .venv-engines/installed build/azurite/installed
	TIGRANET_ENGINES=1 OMP_NUM_THREADS=1 $(ENGINES)/python -m pytest --override-ini addopts= --import-mode=importlib \
	    tests/engines tests/workflows/bulk_prediction

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(SPHINX) -D plot_gallery=0 -b dummy . build/docs-check

docs: setup  # with the programs of the gallery, which take a minute
	$(SPHINX) . build/docs
	@echo "open build/docs/index.html"

fuzz: setup  # a minute of new random inputs per target; atheris has no package for some systems, and is not required
	-$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[fuzz]'
	TIGRANET_FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) OMP_NUM_THREADS=1 $(BIN)/pytest tests/fuzz

container-check: setup  # the steps of the Dockerfile without Docker, with dependencies from the package index
	TIGRANET_CONTAINER_CHECK=1 $(BIN)/pytest tests/serving/test_container.py

bench: setup
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.cost_by_size --device cpu --output results/cost-cpu.csv
	$(if $(BEFORE),$(BIN)/python -m benchmarks.compare_versions $(BEFORE))

torture: setup  # 25 minutes; mounting full and read-only disks needs root
	$(BIN)/python -m torture --output results/torture.md

clean:
	rm -rf .venv .venv-engines build demo dist docs/gallery .pytest_cache .ruff_cache .mypy_cache .hypothesis
