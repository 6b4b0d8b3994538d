# Each recipe runs a command that also works without just.

default:
    @just --list

# format, vet, staticcheck, architecture, race tests, schemas and tables fresh
check: format vet staticcheck test

format:
    test -z "$(gofmt -l $(git ls-files '*.go'))" || (gofmt -l $(git ls-files '*.go'); exit 1)

# The tags include every file.
vet:
    go vet -tags system ./...
    go vet -tags nodemo ./cmd/muster/demo

# staticcheck needs a third less CPU when it collects garbage less often.
staticcheck:
    GOGC=400 GOMEMLIMIT=3GiB go tool staticcheck -tags system ./...

# the tests with the race detector, the slowest packages first. Tests wait for their goroutines, so the detector need not wait a second at exit
test:
    GORACE=atexit_sleep_ms=0 go test -race -vet=off -timeout 20m ./testing/e2e ./cmd/muster ./...

# the tests that need root and a Debian machine. The timeouts end a run that hangs. The browser test runs without -race: other tests cover its code
system:
    GORACE=atexit_sleep_ms=0 go test -race -vet=off -count=1 -timeout 60m -tags system -run "^($(git grep -h '^func Test' -- $(git grep -l '^//go:build system' -- '*_test.go' ':!testing/browser' ':!testing/bench') | sed 's/^func \(Test[A-Za-z0-9_]*\).*/\1/' | sort -u | paste -sd'|'))$" $(git grep -l '^//go:build system' -- '*_test.go' ':!testing/browser' ':!testing/bench' | xargs -n1 dirname | sort -u | sed 's|^|./|')
    go test -vet=off -count=1 -timeout 30m -tags system ./testing/browser

# the screenshots of the documentation, in docs/images
screenshots:
    MUSTER_DOCS_SHOTS="$PWD/docs/images" go test -vet=off -count=1 -tags system -ldflags "-X github.com/musterfleet/muster/cmd/muster/cli.release=1.0.0" ./testing/browser

# all attacks with stolen credentials, about five minutes on two cores; go test runs the short form
attack:
    MUSTER_ATTACK=whole go test -count=1 -timeout 30m ./testing/attack

# random faults while files drift, in rounds, as root, about three hours; go test runs one short round
chaos rounds="50":
    MUSTER_CHAOS={{rounds}} go test -race -count=1 -parallel 4 -timeout 12h -tags system ./testing/chaos

generate:
    go generate ./schemas ./docs ./fleet/web/page

# the deb and the rpm, in dist
package *version:
    deploy/package/build {{version}}

bench:
    go test -run '^$' -bench . -benchtime 3x ./...

demo:
    go run ./cmd/muster demo

# print the sizes of the code
house:
    go run ./testing/arch/house
