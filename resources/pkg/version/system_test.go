//go:build system

package version

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
)

// TestAgainstDpkg compares 10,000 pairs of versions as dpkg itself does.
func TestAgainstDpkg(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is the oracle, and this machine has none")
	}
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"0", "1", "9", "10", "01", "a", "b", "rc", "~", "+", ".", "-", "deb12u1"}
	word := func(first string) string {
		var b strings.Builder
		b.WriteString(first)
		for range random.IntN(6) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		return b.String()
	}
	next := func() string {
		epoch := []string{"", "", "", "0:", "1:"}[random.IntN(5)]
		return epoch + strings.TrimRight(word([]string{"1", "2", "10"}[random.IntN(3)]), "-")
	}
	for range 10_000 {
		a, b := next(), next()
		if random.IntN(3) == 0 {
			b = a + []string{"~", "+b1", "-1", ".0", "a"}[random.IntN(5)]
		}
		operator := "eq"
		got, err := CompareBy(Deb, a, b)
		switch {
		case err != nil:
			t.Fatal(err)
		case got < 0:
			operator = "lt"
		case got > 0:
			operator = "gt"
		}
		err = exec.CommandContext(t.Context(), "dpkg", "--compare-versions", a, operator, b).Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 1 {
			t.Errorf("dpkg denies %s %s %s", a, operator, b)
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
