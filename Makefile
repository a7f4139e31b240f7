# make demo   the answer to "which settings are best for this service", on the
#             built-in service: needs only Go, git and make
# make test   everything that is checked; does its own set-up
# make lint   formatting and vet
# make bench  the slow proofs whose figures are in docs/ (about an hour)
# make bench-load  what a request costs the load engine, beside other programs
#             (about 45 minutes on a quiet machine with two CPUs, best as root)

GO     ?= go
HAKARU := bin/hakaru

.PHONY: demo test packages lint bench bench-load build FORCE
.DEFAULT_GOAL := build

build: $(HAKARU)

# Go knows best whether anything is out of date.
$(HAKARU): FORCE
	$(GO) build -trimpath -o $@ ./cmd/hakaru

demo: $(HAKARU)
	$(HAKARU) run examples/fibonacci/hakaru.yaml

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted with gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) mod verify >/dev/null
	$(GO) mod tidy -diff

# The tests run real servers: uWSGI, gunicorn, nginx, MariaDB and others.
packages:
	.ci/packages

# What runs whole experiments comes last and by itself: two timed things at once
# would measure each other.
test: packages lint
	$(GO) test $$($(GO) list ./... | grep -v '/cmd/')
	$(GO) test ./cmd/...

bench: $(HAKARU)
	$(GO) run ./bench/aa -hakaru $(HAKARU)

bench-load: $(HAKARU)
	$(GO) run ./bench/load -hakaru $(HAKARU) -lag -truth -out docs/bench-load.md -raw bin/bench-load.tsv
