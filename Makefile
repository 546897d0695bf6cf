# Everything a person or a machine does with this tree has a target here. `make` alone lists them.

VERSION   ?= $(shell tools/version.sh)
PREFIX    ?= /usr/local
ARGS      ?=
FUZZTIME  ?= 30s
CRASH_POINTS ?= 5000
FLOOD_UPDATES ?= 10000
LINEAR_OPS ?= 10000000
DAEMON_FAULTS ?= 1000
DAEMON_OPS ?= 100000
STALLED   ?= 5000
REAL_WAIT ?= 10m
RACE      ?= ./...
NORACE    ?= ^$$
# What does not run with the stores in PostgreSQL: these lock the file of SQLite.
STORED     = ./engine ./connectors/admin ./connectors/telegram ./connectors/terminal ./connectors/whatsapp
ONFILES    = ^(TestDecideBrokenStore|TestRule14AnyDoubtIsNotAGrant)$$
# RAPID_SEED makes the cases of a property the same in every run of the tests; make fuzz draws others.
RAPID_SEED ?= 1
SIM_SEEDS ?= 1000000
MIGRATED_ENTRIES ?= 1000000
DECISIONS ?= 1000000
FRESH     ?= bookworm trixie
FROM      ?=
GALLERY   ?= bin/gallery
READING   ?= bin/reading
MUTATE    ?=
LINT       = go tool -modfile=tools/lint.mod golangci-lint
KEPT       = $(or $(FROM),bin/bench.txt)

# One set of flags for every Go command, so that nothing is compiled twice: what they change is part of a package's key in
# the build cache. Flags of the user's own come first. Without -buildvcs=false, a checkout of another account would fail.
# go test need not vet: lint does, by the same rules and more.
GOFLAGS   := $(shell GOTOOLCHAIN=local go env GOFLAGS 2>/dev/null)
GOFLAGS   += $(filter-out $(GOFLAGS),-trimpath -buildvcs=false -vet=off)
export GOFLAGS
export CGO_ENABLED = 1
# For SQLite, which is a quarter of a build at Go's default of -O2 -g: -O1 compiles it in 21 instead of 51 CPU-seconds,
# and 300,000 inserts, 60,000 reads and 60,000 statements prepared took the same time with either (20.6 and 20.2 s).
export CGO_CFLAGS ?= -O1

.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: need ## build bin/daycared
	go build -ldflags '-w$(if $(VERSION), -X main.linked=$(VERSION))' -o bin/daycared ./cmd/daycared

.PHONY: install
install: SHARE = $(DESTDIR)$(PREFIX)/share
install: ## install bin/daycared, its man pages and completions under PREFIX, /usr/local; build it first if it is out of date
	@tools/current.sh '$(VERSION)' || $(MAKE) build
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(SHARE)/man/man1' '$(SHARE)/bash-completion/completions' \
		'$(SHARE)/zsh/site-functions' '$(SHARE)/fish/vendor_completions.d'
	install -m 0755 bin/daycared '$(DESTDIR)$(PREFIX)/bin/daycared'
	bin/daycared reference --man '$(SHARE)/man/man1'
	bin/daycared completion bash >'$(SHARE)/bash-completion/completions/daycared'
	bin/daycared completion zsh >'$(SHARE)/zsh/site-functions/_daycared'
	bin/daycared completion fish >'$(SHARE)/fish/vendor_completions.d/daycared.fish'

.PHONY: demo
demo: build ## the whole loop in this terminal; ARGS='--answer "allow,deny:keep old/,…"' plays it by itself
	@bin/daycared demo $(ARGS)

.PHONY: test
test: ## run every test; first say what is missing for it, how long it takes and how much memory
	@tools/need.sh test
	RAPID_SEED=$(RAPID_SEED) go test -timeout 25m ./...
	DAYCARED_TEST_STORE=postgres RAPID_SEED=$(RAPID_SEED) go test -timeout 10m -p 4 -skip '$(ONFILES)' $(STORED)

.PHONY: test-channel
test-channel: need ## run the tests of one channel, CHANNEL=telegram; a minute
	@tools/channel.sh '$(CHANNEL)'

.PHONY: test-real
test-real: need ## real agents from npm (Linux on x86-64) ask the daemon, each of docs/tried.md in each of its modes; one call waits REAL_WAIT, 10m; an hour
	REAL_WAIT=$(REAL_WAIT) go test -tags real ./cmd/daycared -run 'TestReal(Agents)?$$' -parallel 1 -count=1 -v -timeout 2h

.PHONY: race
race: need ## run the tests of RACE, ./..., but for those of NORACE, with the race detector
	RAPID_SEED=$(RAPID_SEED) go test -race -timeout 30m -skip '$(NORACE)' $(RACE)

.PHONY: check
check: format lint tidy generated ## the four below: what must be clean before a commit

.PHONY: format
format: need ## gofmt
	@files=$$("$$(go env GOROOT)/bin/gofmt" -l .); test -z "$$files" || \
		{ echo "$$files"; echo 'not formatted: run gofmt -w on the files above' >&2; exit 1; }

.PHONY: lint
lint: need ## staticcheck and the other linters of .golangci.yml
	$(LINT) run --build-tags real ./...

.PHONY: tidy
tidy: need ## go.mod and go.sum say what the code needs
	go mod tidy -diff

.PHONY: generated
generated: need ## generated files are what go generate writes
	tools/generated.sh

.PHONY: vet
vet: need ## go vet alone; lint looks for the same and more
	go vet ./...
	go vet -tags real ./cmd/daycared

.PHONY: cover
cover: need ## coverage by package; fails below 100 % of permissions and its registry or 90 % of any other
	go test -timeout 20m -coverpkg=./... -coverprofile=cover.out ./... >cover.log || { cat cover.log; rm cover.log; exit 1; }
	@rm cover.log
	@awk -f tools/cover.awk cover.out

.PHONY: trace
trace: need ## rules suggested from the first half of TRACE, a file of calls, and the prompts that they save on the second
	DAYCARED_TRACE='$(abspath $(TRACE))' go test -count 1 -v -run '^TestTrace$$' ./permissions/rules

.PHONY: bypasses
bypasses: need ## rules against every way round them that is known, and against BYPASSES, another file of cases, if it is named
	DAYCARED_BYPASSES=$(BYPASSES) go test -count=1 ./permissions/rules

.PHONY: fuzz
fuzz: need ## every property with 2,000 cases that differ in each run, and every fuzz target for FUZZTIME, 30s
	tools/fuzz.sh $(FUZZTIME)

.PHONY: threats
threats: need ## count the test cases that try each threat of tools/threats.txt; fails when one has none or does not hold, or there are fewer than 900
	@go test -json -timeout 25m $$(grep -rlE '"[A-H][0-9]+/' --include='*_test.go' . | xargs -n 1 dirname | sort -u) | \
		awk -f tools/threats.awk tools/threats.txt -

.PHONY: vuln
vuln: need ## ask the Go vulnerability database about the dependencies and what is called of them
	@tools/vuln.sh

.PHONY: mutate
mutate: need ## change permissions, the grammar of answers, hooks and the order of writes in one place at a time: each change must fail a test; an hour, or the folders and files MUTATE alone
	tools/mutate.sh $(MUTATE)

.PHONY: gallery
gallery: need ## draw what people see, of each kind and in each state, as GALLERY, bin/gallery, as index.html and as pictures; needs chromium
	@rm -rf $(GALLERY) && mkdir -p $(GALLERY)
	go test ./cmd/daycared -run 'TestScripts/gallery' -count=1 -gallery '$(abspath $(GALLERY))'
	go run ./tools/gallery $(GALLERY)

.PHONY: reading
reading: need ## draw the 120 cards of cmd/daycared/testdata/reading to READING, bin/reading, 40 of them dangerous, for a reader; needs chromium
	@rm -rf $(READING) && mkdir -p $(READING)
	go test -tags real ./cmd/daycared -run 'TestReading$$' -count=1 -gallery '$(abspath $(READING))' -timeout 1h
	go run ./tools/gallery $(READING)

.PHONY: fresh
fresh: ## do what the README says on the Debians of FRESH, bookworm and trixie, each made from nothing, with 2 GiB; as root, needs debootstrap
	@tools/fresh.sh $(FRESH)

.PHONY: soak
soak: need ## kill the daemon at CRASH_POINTS, 5000, points, send FLOOD_UPDATES, 10000, taps and texts, count what was lost; migrate MIGRATED_ENTRIES, 1000000, of the first schema; check LINEAR_OPS, 10000000, calls that race, and DAEMON_OPS, 100000, at three daemons through DAEMON_FAULTS, 1000; SIM_SEEDS, 1000000, simulated days
	CRASH_POINTS=$(CRASH_POINTS) go test ./cmd/daycared -run 'CrashLoop$$' -count=1 -v -timeout 24h
	CRASH_POINTS=$(CRASH_POINTS) go test ./engine/store -run 'ManyDeaths$$' -count=1 -v -timeout 24h
	MIGRATED_ENTRIES=$(MIGRATED_ENTRIES) go test ./engine/store -run 'ALargeStoreIsMigrated$$' -count=1 -v -timeout 24h
	FLOOD_UPDATES=$(FLOOD_UPDATES) go test ./connectors/telegram -run 'TestAFloodOverABadNetwork$$' -count=1 -v -timeout 24h
	LINEAR_OPS=$(LINEAR_OPS) go test ./internal/linearizability -run 'TestDecidingIsLinearizable$$' -count=1 -v -timeout 24h
	CRASH_POINTS=$(DAEMON_FAULTS) LINEAR_OPS=$(DAEMON_OPS) go test ./internal/linearizability -run 'TestThreeDaemonsAreLinearizable$$' -count=1 -v -timeout 24h
	SIM_SEEDS=$(SIM_SEEDS) go test ./engine/simulation -run 'TestSimulation$$' -count=1 -v -timeout 48h

.PHONY: simulate
simulate: need ## measure what 250 idle daemons, with 1,000 connections, cost PostgreSQL
	go test ./engine/store -run '^$$' -bench 'IdleDaemons$$' -benchtime 1x

.PHONY: replay
replay: need ## tell what happened on the simulated day of SEED, as one that `make test` or `make soak` names
	@test -n '$(SEED)' || { echo 'which day? make replay SEED=17' >&2; exit 2; }
	SIM_SEED=$(SEED) go test ./engine/simulation -run 'TestReplay$$' -count=1 -v

.PHONY: stalled
stalled: need ## hold STALLED, 5000, connections to the agents' doors and see how long deciding takes meanwhile
	STALLED=$(STALLED) go test ./internal/server -run 'StalledConnections' -count=1 -v

.PHONY: bench
bench: need ## each figure beside the least that can be, as a table of ratios; DECISIONS, 1000000, at once, and a store of DECIDED, 1000000 (about an hour)
	@$(if $(FROM),,tools/figures.sh run $(KEPT) $(DECISIONS))
	@tools/figures.sh show '$(KEPT)'

.PHONY: figures
figures: bench ## make bench, and write the table of docs/performance.md and its picture; FROM=bin/bench.txt: of what it kept
	@tools/figures.sh write '$(KEPT)'

.PHONY: clean
clean: ## remove what was built here
	rm -rf bin cover.out

.PHONY: need
need: ## say what is missing to build
	@tools/need.sh
