package redact_test

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
)

func base(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func hexOf(s string) string { return hex.EncodeToString([]byte(s)) }

// encodedForms returns encodings of encodings, and texts with terminal colours.
func encodedForms() map[string]func(string) string {
	colours := strings.NewReplacer("h", "\x1b[31mh", "t", "\x1b[1;32mt\x1b[0m", "r", "r\x1b[K")

	return map[string]func(string) string{
		"base32":            func(s string) string { return base32.StdEncoding.EncodeToString([]byte(s)) },
		"base64 of base64":  func(s string) string { return base(base(s)) },
		"base64 of hex":     func(s string) string { return base(hexOf(s)) },
		"base64 of JSON":    func(s string) string { return base(asJSON(s, true)) },
		"base64 of a query": func(s string) string { return base("x=" + url.QueryEscape(s) + "&y=z") },
		"base64 of base32":  func(s string) string { return base(base32.StdEncoding.EncodeToString([]byte(s))) },
		"hex of base64":     func(s string) string { return hexOf(base(s)) },
		"base32 of base64":  func(s string) string { return base32.StdEncoding.EncodeToString([]byte(base(s))) },
		"query of base64":   func(s string) string { return url.QueryEscape(base(s)) },
		"colours":           colours.Replace,
		"colours, escaped":  func(s string) string { return asJSON(colours.Replace(s), true) },
		"colours of base64": func(s string) string { return "\x1b[33m" + base(s)[:7] + "\x1b[0m" + base(s)[7:] },
	}
}

// TestRedactorOfEncodedForms searches the redacted forms of a secret for parts of it, with and without a prefix.
func TestRedactorOfEncodedForms(t *testing.T) {
	for name, form := range encodedForms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, secret := range []string{"hunter22-the-secret", "correct horse battery: staple", `"it's" a %41 th\ing <&>`} {
				r := redact.New(model.NewSecret(secret))
				whole := form(secret)
				if got := r.Redact("it said " + whole + " and ended"); !strings.HasSuffix(got, " and ended") || len(readable(got))*4 > len(whole) {
					t.Errorf("%q: %q leaves %q", secret, whole, got)
				}
				before := "user: "
				if got := r.Redact("it said:\n" + form(before+secret) + "\nand ended"); !strings.Contains(got, model.Redacted) {
					t.Errorf("%q after something: nothing of %q is redacted", secret, form(before+secret))
				}
			}
		})
	}
}

// readable returns the part of a form that is not redacted.
func readable(got string) string {
	got = strings.TrimSuffix(strings.TrimPrefix(got, "it said "), " and ended")
	for _, word := range []string{model.Redacted, "\x1b[31m", "\x1b[K", "\x1b[0m"} {
		got = strings.ReplaceAll(got, word, "")
	}

	return strings.Join(strings.Fields(got), "")
}

// TestRedactorKeepsOrdinaryText checks that dumps, encodings and colours without a secret stay readable.
func TestRedactorKeepsOrdinaryText(t *testing.T) {
	t.Parallel()
	r := redact.New(model.NewSecret("correct-horse-battery"), model.NewSecret("8080"))
	for _, text := range []string{
		hex.Dump([]byte("nothing of it is secret, all of it is shown")), base(base("nothing of it is secret")), "\x1b[31mred\x1b[0m",
		"at 2026-11-22 13:34:31.123456 from fe80::1:22:333:4444", "/usr/lib/x86_64-linux-gnu/libsystemd.so.0.36.0", "a b c d e f g h", "1, 2, 3, 4, 5",
	} {
		if got := r.Redact(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// computing returns the CPU time of f.
func computing(t *testing.T, f func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	f()

	return used() - before
}

// TestRedactorIsLinear redacts texts that are as much work as there is for their size.
func TestRedactorIsLinear(t *testing.T) {
	secret := "correct-horse-battery"
	r := redact.New(model.NewSecret(secret))
	for name, text := range map[string]string{
		"a run":           strings.Repeat(base(base("nothing of it")), 2500),
		"a dump":          strings.Repeat(hex.Dump([]byte("nothing of it is")), 700),
		"all at once":     strings.Repeat(`\x1b[1m%41 68 75 6e 74 \n 110 164 `+base(`a\nb%41`)+"\n", 1000),
		"almost a secret": strings.Repeat(hexOf(secret[:18])+" ", 1000),
		"digits":          strings.Repeat("1", 1<<16),
	} {
		small := computing(t, func() { r.Redact(text) })
		if large := computing(t, func() { r.Redact(strings.Repeat(text, 8)) }); large > 40*small+time.Second || large > 20*time.Second {
			t.Errorf("%s: %d bytes took %s, eight times as much %s", name, len(text), small, large)
		} else {
			t.Logf("%s: %d bytes took %s, eight times as much %s", name, len(text), small, large)
		}
	}
}
