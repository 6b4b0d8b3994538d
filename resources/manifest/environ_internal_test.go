package manifest

import (
	"maps"
	"slices"
	"testing"
)

func TestParseEnviron(t *testing.T) {
	const text = "\ufeff# comment\n\nA=1\r\nexport B = two words  # comment\nC='x # $Y \\n'\nD=\"a\\nb \\\"q\\\" \\x\" # comment\nE=\n F=#1\nG=a#b\nA=2\nH.i-j=k=l\n" +
		"no assignment\n1A=x\nI=\"open\nJ='a' b\n=x\nK=''"
	got, invalid := parseEnviron(text)
	want := map[string]string{"A": "2", "B": "two words", "C": "x # $Y \\n", "D": "a\nb \"q\" \\x", "E": "", "F": "", "G": "a#b", "H.i-j": "k=l", "K": ""}
	if !maps.Equal(got, want) || !slices.Equal(invalid, []int{12, 13, 14, 15, 16}) {
		t.Errorf("%q, invalid lines %v", got, invalid)
	}
}
