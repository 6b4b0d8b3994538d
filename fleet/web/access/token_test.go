package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestTokensOfAFile(t *testing.T) {
	t.Parallel()
	reader, readLine, err := NewToken(Read, "grafana")
	if err != nil {
		t.Fatal(err)
	}
	operator, operateLine, err := NewToken(Operate, "anna")
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseTokens([]byte("# comment\n\n" + readLine + "  " + strings.ReplaceAll(strings.ToUpper(operateLine[8:]), "ANNA", "operate anna")))
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for text, want := range map[string]User{
		reader: {Name: "grafana", Role: Read}, operator: {Name: "anna", Role: Operate}, "": {}, "muster_": {}, reader + "x": {}, strings.ToUpper(reader): {}, digest: {},
	} {
		if got, ok := userOf(all, text); got != want || ok != (want != User{}) {
			t.Errorf("%q: %+v %v", text, got, ok)
		}
	}
	if strings.Contains(readLine, reader) || reader == operator {
		t.Errorf("%q %q", readLine, reader)
	}
	if _, _, err := NewToken(Read, "a b"); err == nil {
		t.Error("a name of two words")
	}
	// The digest of a short word is no valid token.
	weak, err := parseTokens([]byte("operate eve " + digest))
	if _, ok := userOf(weak, "test"); err != nil || ok {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestTokensThatAreNotValid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"read a":                                   "1: 2 words: write a role, a name and the SHA-256",
		"\nadmin a " + digest:                      `2: unknown role "admin": write read or operate`,
		"read a.b " + digest:                       `1: invalid name "a.b"`,
		"read a 00":                                "1: the last word must be the SHA-256 of the token, 64 hexadecimal digits",
		"read a " + digest + "00":                  "1: the last word must be",
		"read a " + strings.Repeat("x", 64):        "1: the last word must be",
		"read a " + digest + "\nread b " + digest:  "2: the token of b is there twice",
		"read " + strings.Repeat("a", 65) + digest: "1: 2 words",
	} {
		if _, err := parseTokens([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	var many strings.Builder
	for range 1001 {
		_, line, _ := NewToken(Read, "a")
		many.WriteString(line)
	}
	if _, err := parseTokens([]byte(many.String())); err == nil || !strings.HasPrefix(err.Error(), "1001: at most 1000") {
		t.Error(err)
	}
}

func TestOthersMayNotReadTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte("read a "+digest+"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := readTokens(path); err == nil || !strings.Contains(err.Error(), "has mode 0640, so others may read it: chmod 600 "+path) {
		t.Error(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := readTokens(path); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("read a " + digest + "\n# x\n")
	f.Add("operate\tanna  " + digest)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseTokens([]byte(text))
		if err != nil && len(all) > 0 {
			t.Errorf("%v and %v", all, err)
		}
		for _, one := range all {
			if one.Role == None || checkUser(one.Name) != nil {
				t.Errorf("%+v", one)
			}
		}
		if u, ok := userOf(all, text); ok {
			t.Errorf("%+v by its own file", u)
		}
	})
}

func TestFailuresAreCountedByAddress(t *testing.T) {
	t.Parallel()
	var f failures
	now := start
	for range maxFailures {
		if f.add("192.0.2.1:1000", now) || f.add("[2001:db8::1]:1", now) {
			t.Fatal("too many too soon")
		}
	}
	if !f.add("192.0.2.1:2000", now) || !f.add("[2001:db8::2]:1", now) || f.add("192.0.2.2:1000", now) || f.add("[2001:db8:0:1::]:1", now) {
		t.Error("an address, or the network of a customer, is one; others are not")
	}
	if f.add("192.0.2.1:2000", now.Add(window)) {
		t.Error("it does not end")
	}
	for i := range maxAddresses + 100 {
		f.add("10."+strings.Join([]string{itoa(i >> 16), itoa(i >> 8 & 255), itoa(i & 255)}, ".")+":1", now.Add(window))
	}
	if len(f.by) > maxAddresses+1 {
		t.Errorf("%d addresses", len(f.by))
	}
	if !f.add("nonsense", now.Add(window)) {
		t.Error("those beyond the bound are not one")
	}
}
