package pkgtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/pkg/version"
	"github.com/musterfleet/muster/testing/hosttest"
)

// Orderer compares versions.
type Orderer interface {
	VersionCmp(a, b string) (int, error)
}

// Order is how two versions compare.
type Order struct {
	A, B string
	Want int
}

// Versions checks orders, both ways round, and that none of bad is a version.
func Versions(t *testing.T, p Orderer, orders []Order, bad []string) {
	t.Helper()
	for _, o := range orders {
		for _, each := range []Order{o, {A: o.B, B: o.A, Want: -o.Want}} {
			if got, err := p.VersionCmp(each.A, each.B); err != nil || got != each.Want {
				t.Errorf("%s and %s: %d, %v", each.A, each.B, got, err)
			}
		}
	}
	for _, text := range bad {
		for _, each := range [][]string{{text, "1"}, {"1", text}} {
			if _, err := p.VersionCmp(each[0], each[1]); !errors.Is(err, version.ErrInvalid) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

// FuzzVersions checks of any two versions that the order is the opposite when
// they are turned round, and that a version is equal to itself.
func FuzzVersions(f *testing.F, p Orderer) {
	f.Fuzz(func(t *testing.T, a, b string) {
		order, err := p.VersionCmp(a, b)
		back, err2 := p.VersionCmp(b, a)
		if (err == nil) != (err2 == nil) || order != -back || (err == nil && a == b && order != 0) {
			t.Errorf("%q and %q: %d and %d, %v, %v", a, b, order, back, err, err2)
		}
	})
}

// pairs is how many versions Agrees compares.
const pairs = 10_000

// Agrees compares generated pairs of versions with what a program says: it reads
// lines of two versions and their order, prints those that it does not agree with,
// and in the end how many there were.
func Agrees(t *testing.T, p Orderer, generate func(*rand.Rand) (a, b string), program ...string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var lines strings.Builder
	seen := map[int]int{}
	for range pairs {
		a, b := generate(random)
		order, err := p.VersionCmp(a, b)
		if err != nil {
			t.Fatal(err)
		}
		seen[order]++
		fmt.Fprintln(&lines, a, b, order)
	}
	for order := -1; order <= 1; order++ {
		if seen[order] < pairs/20 {
			t.Errorf("only %d pairs are of order %d", seen[order], order)
		}
	}
	result, err := hosttest.New(t).Run(t.Context(), command.Command{Argv: program, Stdin: strings.NewReader(lines.String())})
	if err != nil || result.Stdout.String() != fmt.Sprintln(pairs) || result.Stderr.String() != "" {
		t.Errorf("it does not agree: %v\n%s%s", err, result.Stdout, result.Stderr)
	}
}

// Text returns up to so many random letters, at least one.
func Text(random *rand.Rand, letters string, most int) string {
	var b strings.Builder
	for range random.IntN(most) + 1 {
		b.WriteByte(letters[random.IntN(len(letters))])
	}

	return b.String()
}
