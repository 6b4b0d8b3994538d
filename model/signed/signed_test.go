package signed_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/signtest"
)

const (
	key  = "group.web.motd"
	body = "muster:\n  resources: [] # <ä>\n"
)

// at is when everything here happens.
var at = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func statement() signed.Statement {
	return signed.Statement{Target: key, Content: body, Issued: at, Expires: at.Add(time.Hour)}
}

func policyOf(threshold int, keys ...*signed.Signer) signed.Policy {
	p := signed.Policy{Fleet: "muster", Threshold: threshold}
	for _, k := range keys {
		p.Keys = append(p.Keys, signed.Trusted{Key: k.Key()})
	}

	return p
}

// judge is what a node does with a value: who signed it, for what, and when.
func judge(t testing.TB, p signed.Policy, value []byte, now time.Time, last signed.Mark) error {
	e, err := signed.Open(value)
	if err == nil {
		err = p.Check(t.Context(), e, signed.Assign, key)
	}
	if err == nil {
		err = e.Fresh(now, last)
	}

	return err
}

func TestSignedIsAccepted(t *testing.T) {
	alice := signtest.Signer(t)
	value := signtest.Sign(t, statement(), alice)
	if err := judge(t, policyOf(1, alice), value, at.Add(time.Minute), signed.Mark{}); err != nil {
		t.Fatal(err)
	}
	e, err := signed.Open(value)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Statement.Issued.Equal(at) || e.Statement.Content != body || !slices.Equal(e.Signers(t.Context()), []signed.Key{alice.Key()}) {
		t.Errorf("it comes back as %+v, signed by %v", e.Statement, e.Signers(t.Context()))
	}
	content, err := signed.Content(value)
	if string(content) != body || err != nil {
		t.Errorf("the content is %q, %v", content, err)
	}
	for _, plain := range []string{"", body, "{}", `{"muster": {}}`, "{ payload: x, payloadType: y }", `["payload"]`} {
		if signed.IsEnvelope([]byte(plain)) {
			t.Errorf("%q is an envelope", plain)
		}
		if got, err := signed.Content([]byte(plain)); string(got) != plain || err != nil {
			t.Errorf("%q is %q, %v", plain, got, err)
		}
	}
	// An independent library also verifies it.
	var envelope dsse.Envelope
	if err := json.Unmarshal(value, &envelope); err != nil || envelope.PayloadType != signed.PayloadType {
		t.Errorf("not an envelope of DSSE: %v", err)
	}
}

// TestRefused has what an attacker, or a mistake, can make of a signed value.
func TestRefused(t *testing.T) {
	alice, bob, eve := signtest.Signer(t), signtest.Signer(t), signtest.Signer(t)
	good := signtest.Sign(t, statement(), alice)
	change := func(f func(*signed.Statement)) []byte {
		s := statement()
		f(&s)
		return signtest.Sign(t, s, alice)
	}
	raw := func(f func(*dsse.Envelope)) []byte {
		var e dsse.Envelope
		if err := json.Unmarshal(good, &e); err != nil {
			t.Fatal(err)
		}
		f(&e)
		out, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// resigned signs another payload by the library, as alice might by mistake.
	resigned := func(payloadType, payload string) []byte {
		by, err := dsse.NewEnvelopeSigner(alice)
		if err != nil {
			t.Fatal(err)
		}
		e, err := by.SignPayload(t.Context(), payloadType, []byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var payload []byte
	raw(func(e *dsse.Envelope) { payload, _ = base64.StdEncoding.DecodeString(e.Payload) })
	web := policyOf(1, alice)
	web.Keys[0].Name, web.Keys[0].Families = "alice", []string{"group.db", "node.*"}
	for name, c := range map[string]struct {
		policy signed.Policy
		value  []byte
		now    time.Time
		last   signed.Mark
		want   error
		text   string
	}{
		"unsigned":              {policyOf(1, alice), raw(func(e *dsse.Envelope) { e.Signatures = nil }), at, signed.Mark{}, signed.ErrSignatures, "0 of 1 needed for group.web"},
		"wrong key":             {policyOf(1, bob), good, at, signed.Mark{}, signed.ErrSignatures, "is not a trusted key"},
		"key of another group":  {web, good, at, signed.Mark{}, signed.ErrSignatures, "0 of 1 needed for group.web: alice is not trusted for group.web"},
		"name of another's key": {policyOf(1, alice), raw(func(e *dsse.Envelope) { e.Signatures[0].KeyID = string(eve.Key()) }), at, signed.Mark{}, signed.ErrSignatures, "is not one of this content"},
		"signature of another":  {policyOf(1, alice, bob), resign(t, good, eve, alice.Key()), at, signed.Mark{}, signed.ErrSignatures, "is not one of this content"},
		"another content": {policyOf(1, alice), raw(func(e *dsse.Envelope) {
			e.Payload = base64.StdEncoding.EncodeToString(bytes.Replace(payload, []byte("[]"), []byte("{}"), 1))
		}), at, signed.Mark{}, signed.ErrSignatures, ""},
		"another payload type":       {policyOf(1, alice), resigned("application/vnd.in-toto+json", string(payload)), at, signed.Mark{}, signed.ErrMalformed, "payloadType"},
		"the type exchanged":         {policyOf(1, alice), bytes.Replace(resigned("application/vnd.in-toto+json", string(payload)), []byte("application/vnd.in-toto+json"), []byte(signed.PayloadType), 1), at, signed.Mark{}, signed.ErrSignatures, ""},
		"unknown field of statement": {policyOf(1, alice), resigned(signed.PayloadType, strings.Replace(string(payload), "{", `{"root":true,`, 1)), at, signed.Mark{}, signed.ErrMalformed, "unknown field"},
		"unknown field of envelope":  {policyOf(1, alice), bytes.Replace(good, []byte("{"), []byte(`{"x":1,`), 1), at, signed.Mark{}, signed.ErrMalformed, "unknown field"},
		"unknown field of signature": {policyOf(1, alice), bytes.Replace(good, []byte(`"keyid"`), []byte(`"x":1,"keyid"`), 1), at, signed.Mark{}, signed.ErrMalformed, "unknown field"},
		"truncated":                  {policyOf(1, alice), good[:len(good)/2], at, signed.Mark{}, signed.ErrMalformed, ""},
		"something behind":           {policyOf(1, alice), append(slices.Clone(good), "{}"...), at, signed.Mark{}, signed.ErrMalformed, "unexpected text after the end"},
		"a statement of another":     {policyOf(1, alice), resigned(signed.PayloadType, `{"protocol":"io.muster.v2.statement"}`), at, signed.Mark{}, signed.ErrMalformed, "protocol"},
		"huge":                       {policyOf(1, alice), bytes.Repeat([]byte(" "), signed.MaxBytes+1), at, signed.Mark{}, signed.ErrMalformed, "at most"},
		"many signatures":            {policyOf(1, alice), raw(func(e *dsse.Envelope) { e.Signatures = slices.Repeat([]dsse.Signature{{}}, 17) }), at, signed.Mark{}, signed.ErrMalformed, "at most 16"},
		"huge signatures":            {policyOf(1, alice), raw(func(e *dsse.Envelope) { e.Signatures[0].KeyID = strings.Repeat("x", 9000) }), at, signed.Mark{}, signed.ErrMalformed, "at most 8192"},
		"replayed to another key":    {policyOf(1, alice), change(func(s *signed.Statement) { s.Target = "group.web.other" }), at, signed.Mark{}, signed.ErrElsewhere, "group.web.other"},
		"replayed to another group":  {policyOf(1, alice), change(func(s *signed.Statement) { s.Target = "group.db.motd" }), at, signed.Mark{}, signed.ErrElsewhere, "group.db.motd"},
		"replayed to another node":   {policyOf(1, alice), change(func(s *signed.Statement) { s.Target = "node.web02.motd" }), at, signed.Mark{}, signed.ErrElsewhere, "node.web02.motd"},
		"replayed to another fleet":  {policyOf(1, alice), change(func(s *signed.Statement) { s.Fleet = "test" }), at, signed.Mark{}, signed.ErrElsewhere, `the fleet "test"`},
		"a removal as a value":       {policyOf(1, alice), change(func(s *signed.Statement) { s.Action, s.Content = signed.Remove, "" }), at, signed.Mark{}, signed.ErrElsewhere, "to remove"},
		"a request as a value":       {policyOf(1, alice), change(func(s *signed.Statement) { s.Action, s.Target = signed.Ensure, "group.web" }), at, signed.Mark{}, signed.ErrElsewhere, "to ensure"},
		"one of two":                 {policyOf(2, alice, bob), good, at, signed.Mark{}, signed.ErrSignatures, "1 of 2 needed for group.web: signed by"},
		"the same twice for two":     {policyOf(2, alice, bob), raw(func(e *dsse.Envelope) { e.Signatures = append(e.Signatures, e.Signatures[0]) }), at, signed.Mark{}, signed.ErrSignatures, "1 of 2"},
		"the same without its name":  {policyOf(2, alice, bob), raw(func(e *dsse.Envelope) { e.Signatures = append(e.Signatures, dsse.Signature{Sig: e.Signatures[0].Sig}) }), at, signed.Mark{}, signed.ErrSignatures, "1 of 2"},
		"the same by another's name": {policyOf(2, alice, bob), raw(func(e *dsse.Envelope) {
			e.Signatures = append(e.Signatures, dsse.Signature{KeyID: string(bob.Key()), Sig: e.Signatures[0].Sig})
		}), at, signed.Mark{}, signed.ErrSignatures, "1 of 2"},
		"expired":                  {policyOf(1, alice), good, at.Add(time.Hour), signed.Mark{}, signed.ErrExpired, "2026-03-01T13:00:00Z"},
		"in the future":            {policyOf(1, alice), good, at.Add(-signed.MaxSkew - 1), signed.Mark{}, signed.ErrFuture, "signed in the future"},
		"older":                    {policyOf(1, alice), good, at, signed.Mark{Issued: at.Add(1), Sum: "x"}, signed.ErrOlder, "older than an accepted signature"},
		"another of the same time": {policyOf(1, alice), good, at, signed.Mark{Issued: at, Sum: "x"}, signed.ErrOlder, "older than an accepted signature"},
	} {
		t.Run(name, func(t *testing.T) {
			err := judge(t, c.policy, c.value, c.now, c.last)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v with %q", err, c.want, c.text)
			}
		})
	}
	// The same again is no replay, and within the skew clocks may differ.
	e, err := signed.Open(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := judge(t, policyOf(1, alice), good, at.Add(-signed.MaxSkew), signed.Mark{Issued: at, Sum: e.Sum}); err != nil {
		t.Error(err)
	}
}

// resign replaces the signature of a value by one of another, under a key's name.
func resign(t *testing.T, value []byte, by *signed.Signer, name signed.Key) []byte {
	t.Helper()
	var e dsse.Envelope
	if err := json.Unmarshal(value, &e); err != nil {
		t.Fatal(err)
	}
	body, err := e.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	sig, err := by.Sign(t.Context(), dsse.PAE(e.PayloadType, body))
	if err != nil {
		t.Fatal(err)
	}
	e.Signatures = []dsse.Signature{{KeyID: string(name), Sig: base64.StdEncoding.EncodeToString(sig)}}
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// TestThreshold: two people, one after the other.
func TestThreshold(t *testing.T) {
	alice, bob, eve := signtest.Signer(t), signtest.Signer(t), signtest.Signer(t)
	policy := policyOf(2, alice, bob)
	add := func(value []byte, by *signed.Signer) []byte {
		e, err := signed.Open(value)
		if err != nil {
			t.Fatal(err)
		}
		value, err = e.Add(t.Context(), by)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	one := add(signtest.Sign(t, statement(), alice), alice)
	if err := judge(t, policy, add(one, eve), at, signed.Mark{}); !errors.Is(err, signed.ErrSignatures) {
		t.Errorf("one of the two, and another: %v", err)
	}
	if err := judge(t, policy, add(one, bob), at, signed.Mark{}); err != nil {
		t.Errorf("both: %v", err)
	}
	full := one
	for range signed.MaxSignatures - 1 {
		full = add(full, signtest.Signer(t))
	}
	e, err := signed.Open(full)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Add(t.Context(), bob); err == nil {
		t.Error("it takes more than it is read with")
	}
}

// TestFamilies checks the permitted keys of each family.
func TestFamilies(t *testing.T) {
	alice := signtest.Signer(t)
	for families, want := range map[string]bool{"": true, "group.web": true, "group.*": true, "group.db": false, "node.*": false, "group.db group.web": true} {
		p := policyOf(1, alice)
		p.Keys[0].Families = strings.Fields(families)
		if err := judge(t, p, signtest.Sign(t, statement(), alice), at, signed.Mark{}); (err == nil) != want {
			t.Errorf("%q: %v", families, err)
		}
		if got := p.Signers("group.web") == 1; got != want {
			t.Errorf("%q: %v may sign", families, got)
		}
	}
}

// TestKeys: only keys that are made for it sign. What a server has a user of NATS
// sign could be a statement.
func TestKeys(t *testing.T) {
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range []string{"", "x", string(seed), public} {
		if _, err := signed.NewSigner([]byte(seed)); !errors.Is(err, signed.ErrKey) {
			t.Errorf("%q: %v", seed, err)
		}
	}
	for _, text := range []string{"", "O", public, string(signtest.Signer(t).Key()) + "A"} {
		if _, err := signed.ParseKey(text); !errors.Is(err, signed.ErrKey) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := signed.ParseKey(string(signtest.Signer(t).Key())); err != nil {
		t.Error(err)
	}
}

// TestSignRefuses has statements that no node would accept.
func TestSignRefuses(t *testing.T) {
	alice := signtest.Signer(t)
	for name, change := range map[string]func(*signed.Statement){
		"target":  func(s *signed.Statement) { s.Target = "web" },
		"family":  func(s *signed.Statement) { s.Action = signed.Ensure },
		"action":  func(s *signed.Statement) { s.Action = "delete" },
		"content": func(s *signed.Statement) { s.Action = signed.Remove },
		"no text": func(s *signed.Statement) { s.Content = "a\xff" },
		"expiry":  func(s *signed.Statement) { s.Expires = s.Issued },
		"issued":  func(s *signed.Statement) { s.Issued = time.Time{} },
	} {
		s := statement()
		s.Fleet, s.Action = "muster", signed.Assign
		change(&s)
		if _, err := signed.Sign(t.Context(), s, alice); err == nil {
			t.Errorf("%s: it is signed", name)
		}
	}
	if _, err := signed.Sign(t.Context(), statement()); err == nil {
		t.Error("nobody signed")
	}
}

// FuzzMutation changes bytes of a signed value. An accepted value has the original content.
func FuzzMutation(f *testing.F) {
	alice, bob := signtest.Signer(f), signtest.Signer(f)
	good := signtest.Sign(f, statement(), alice, bob)
	original, err := signed.Open(good)
	if err != nil {
		f.Fatal(err)
	}
	for i := 0; i < len(good); i += 37 {
		f.Add(i, byte(1), 0, byte(0), 0)
		f.Add(i, byte(0x20), i+1, byte(0x40), 0)
	}
	f.Add(0, byte(0), 0, byte(0), 10)
	f.Add(0, byte(0), 0, byte(0), len(good)-1)
	p := policyOf(2, alice, bob)
	f.Fuzz(func(t *testing.T, i int, flip byte, j int, other byte, cut int) {
		value := slices.Clone(good)
		value[abs(i)%len(value)] ^= flip
		value[abs(j)%len(value)] ^= other
		value = value[:len(value)-abs(cut)%len(value)]
		if judge(t, p, value, at, signed.Mark{}) != nil {
			return
		}
		if e, err := signed.Open(value); err != nil || e.Sum != original.Sum {
			t.Errorf("accepted: %s", value)
		}
	})
}

func abs(i int) int { return max(i, -(i + 1)) }

// FuzzOpen opens anything: it never panics, and an unsigned value is never accepted.
func FuzzOpen(f *testing.F) {
	alice := signtest.Signer(f)
	for _, seed := range []string{
		"", "{}", `{"payloadType":"application/vnd.muster.statement+json","payload":"e30=","signatures":[]}`,
		`{"payload":"","payloadType":"x","signatures":null}`, `{"signatures":[{"keyid":"","sig":""}],"payloadType":"application/vnd.muster.statement+json","payload":"e30="}`,
		`{"payloadType":1}`, `{"payloadType":"application/vnd.muster.statement+json","payload":"%","signatures":[{}]}`, "muster: {}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Add(signtest.Sign(f, statement(), signtest.Signer(f)))
	f.Fuzz(func(t *testing.T, value []byte) {
		if judge(t, policyOf(1, alice), value, at, signed.Mark{}) == nil {
			t.Errorf("accepted: %s", value)
		}
		if content, err := signed.Content(value); err == nil && !signed.IsEnvelope(value) && !bytes.Equal(content, value) {
			t.Errorf("%q is %q", value, content)
		}
	})
}

// BenchmarkJudge verifies one change of 4 KiB, as a node does: at most 0.3 ms.
func BenchmarkJudge(b *testing.B) {
	alice, bob := signtest.Signer(b), signtest.Signer(b)
	s := statement()
	s.Content = strings.Repeat("# a line of a manifest, of which it has many\n", 90)
	for name, c := range map[string]struct {
		by []*signed.Signer
	}{"one": {[]*signed.Signer{alice}}, "two": {[]*signed.Signer{alice, bob}}} {
		value, p := signtest.Sign(b, s, c.by...), policyOf(len(c.by), c.by...)
		b.Run(name, func(b *testing.B) {
			before := cpu(b)
			for b.Loop() {
				if err := judge(b, p, value, at, signed.Mark{}); err != nil {
					b.Fatal(err)
				}
			}
			// On a busy machine, the time of the clock says little.
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}

// cpu returns what this process used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
