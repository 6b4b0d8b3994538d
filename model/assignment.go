package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Assignment is the document around a manifest in the bucket
// (io.muster.v1.assignment). One of Manifest and Bundle is set.
type Assignment struct {
	Protocol string         `json:"protocol"`
	Name     string         `json:"name,omitempty"`
	Manifest string         `json:"manifest,omitempty" jsonschema_description:"The manifest's text"`
	Bundle   string         `json:"bundle,omitempty" jsonschema_description:"sha256-… of a bundle in MUSTER_BUNDLES"`
	Digest   string         `json:"digest,omitempty" jsonschema_description:"sha256-… of the manifest's text or the bundle's bytes, checked before use"`
	Data     map[string]any `json:"data,omitempty" jsonschema_description:"External data; overrides the manifest's own"`
	Noop     bool           `json:"noop,omitempty"`
	Drift    Drift          `json:"drift,omitempty" jsonschema:"enum=repair,enum=report,enum=ignore"`
	Interval Duration       `json:"interval,omitempty" jsonschema_description:"Time between two scheduled runs"`
	When     string         `json:"when,omitempty" jsonschema_description:"An expression evaluated on the node; false means not assigned"`
	Priority int            `json:"priority,omitempty" jsonschema_description:"Lower runs first within its family"`
	Expires  time.Time      `json:"expires,omitzero" jsonschema_description:"Time after which it counts as unassigned"`
	Issued   time.Time      `json:"issued,omitzero"`
}

// BundleManifest is the name of the manifest at the root of a bundle.
const BundleManifest = "manifest.yaml"

// MaxBundle is the maximum size of a packed bundle in bytes.
const MaxBundle = 1 << 30

// ContentDigest returns the digest of what runs: of the bundle, else of the
// manifest's text.
func (a *Assignment) ContentDigest() string {
	if a.Bundle != "" {
		return a.Bundle
	}

	return DigestOf([]byte(a.Manifest))
}

// Validate returns every problem of the document under a key with this name; each
// names its property.
func (a *Assignment) Validate(name string) Problems {
	var out Problems
	if a.Name != "" && a.Name != name {
		out.Property("name", "", "the name is %q, but the key names %q", a.Name, name)
	}
	if !slices.Contains([]Drift{"", DriftRepair, DriftReport, DriftIgnore}, a.Drift) {
		out.Property("drift", "one of repair, report, ignore", "`drift` cannot be %q", a.Drift)
	}
	if a.Interval != 0 && a.Interval.Std() < time.Second {
		out.Property("interval", "", "`interval` must be at least 1s, not %s", a.Interval)
	}
	if (a.Manifest == "") == (a.Bundle == "") {
		out.Property("manifest", "", "an assignment has either a `manifest` or a `bundle`")
		return out
	}
	if a.Bundle != "" && !isDigest(a.Bundle) {
		out.Property("bundle", "write sha256- and 64 hexadecimal digits", "invalid bundle digest %q", a.Bundle)
	}
	if content := a.ContentDigest(); a.Digest != "" && a.Digest != content {
		out.Property("digest", "push it again", "the digest does not match: it is %s, the content has %s", a.Digest, content)
	}

	return out
}

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, DigestPrefix)
	_, err := hex.DecodeString(digits)

	return ok && err == nil && len(digits) == 2*sha256.Size
}

// Terms are the settings of an assignment, without its manifest.
type Terms struct {
	// Noop means that nodes only report changes.
	Noop bool `json:"noop,omitempty"`
	// When is the condition that each node evaluates. A long condition is cut.
	When     string    `json:"when,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Priority int       `json:"priority,omitempty"`
	Drift    Drift     `json:"drift,omitempty"`
	Interval Duration  `json:"interval,omitempty"`
	// Signed means that the assignment has a signature. Only nodes verify it.
	Signed bool `json:"signed,omitempty"`
}

const maxCondition = 1024

// Terms returns the settings of an assignment, nil if all have their defaults.
func (a *Assignment) Terms(isSigned bool) *Terms {
	t := Terms{Noop: a.Noop, When: a.When, Expires: a.Expires, Priority: a.Priority, Drift: a.Drift, Interval: a.Interval, Signed: isSigned}
	if len(t.When) > maxCondition {
		t.When = strings.ToValidUTF8(t.When[:maxCondition], "") + " …"
	}
	if t == (Terms{}) {
		return nil
	}

	return &t
}

// Words describes each setting in a few words. Settings that prevent changes come first. format formats a
// time.
func (t *Terms) Words(now time.Time, format func(time.Time) string) []string {
	if t == nil {
		return nil
	}
	var out []string
	add := func(is bool, text string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf(text, args...))
		}
	}
	expires := !t.Expires.IsZero()
	expired := expires && !t.Expires.After(now)
	add(expired, "expired %s", format(t.Expires))
	add(t.Noop, "noop")
	add(expires && !expired, "expires %s", format(t.Expires))
	add(t.Drift != "", "drift %s", t.Drift)
	add(t.Interval != 0, "interval %s", withoutZeros(t.Interval))
	add(t.Priority != 0, "priority %d", t.Priority)
	add(t.Signed, "signed")
	add(t.When != "", "when %s", t.When)

	return out
}

// withoutZeros returns the text of a duration without trailing zeros: 1h instead of 1h0m0s.
func withoutZeros(d Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}

	return text
}

// Entry is one revision of an assignment in the bucket.
type Entry struct {
	// Key is the key in the bucket, Family.Name: node.<node>.<name> or group.<group>.<name>.
	Key    string `json:"key"`
	Family string `json:"-"`
	// Name is the name of the manifest in its family.
	Name string `json:"-"`
	// Revision is the bucket's number of this value. Later values have higher numbers.
	Revision uint64 `json:"revision"`
	// Digest is the digest of the manifest or the bundle. It is empty if it is unknown.
	Digest string `json:"digest,omitempty"`
	// Time is the time when the server stored the value.
	Time time.Time `json:"at,omitzero"`
	// By is the unverified name that the author gave, empty if the author gave none. Nodes ignore it.
	By string `json:"by,omitempty"`
	// Terms are the settings of an assignment document and whether the value is signed, nil for a plain
	// manifest. Nodes ignore them.
	Terms *Terms `json:"terms,omitempty"`
	// Deleted marks a revision that ended the assignment. It has no value.
	Deleted bool `json:"deleted,omitempty"`
	// Refused is the reason why no node uses the value, empty if nodes may use it.
	Refused string `json:"refused,omitempty"`
	// Invalid marks a key that is not valid for an assignment. No node reads it.
	Invalid bool `json:"invalid,omitempty"`
	// Value is a manifest, an assignment document or an envelope. Do not change it. Lists omit it.
	Value []byte `json:"value,omitempty"`
}

// Sync describes how completely a node knows its assignments.
type Sync struct {
	// At is the last time when the node knew all its assignments, zero before the first time.
	At time.Time
	// Known lists the families that the node has read completely since it started, in order of precedence.
	// Each family is read separately.
	Known []string
	// Failed lists, in order, the families that the last attempt could not read. Err has the reason.
	Failed []string
	// Err is the reason why the node does not know its assignments now, nil if it does. It may be temporary.
	Err error
	// Stream is the creation time of the bucket. A recreated bucket has another one.
	Stream time.Time
	// Kept lists, in order, the keys that stay active although they are missing from the bucket: the bucket
	// was recreated, restored or emptied. To end this, put or delete the key.
	Kept []string
	// Invalid lists, in order, the observed keys of the node's families that are not valid for an assignment.
	// No node reads them.
	Invalid []string
	// Unreadable lists, in order, the keys whose newest value has unreadable headers. The node ignores that
	// value, and the active revision stays active.
	Unreadable []string
	// Refused counts answers of NATS to other requests and forged messages since the agent started.
	Refused uint64
	// Denied is a subscription that NATS denied, nil for none. The node may notice puts late and miss
	// requests.
	Denied error
}

// Complete reports whether the entries are complete. Only then is a missing manifest unassigned.
func (s Sync) Complete() bool { return !s.At.IsZero() }

// Knows reports whether all entries of a family are known.
func (s Sync) Knows(family string) bool { return s.Complete() || slices.Contains(s.Known, family) }

// Memory is what a node stores across restarts. With it, the node distinguishes an unassigned manifest from
// one that the bucket lost.
type Memory struct {
	// Entries are the known keys and revisions, without values.
	Entries map[string]Entry
	// Stream and Kept are the fields of Sync.
	Stream time.Time
	Kept   []string
}

// EncodeAssignment encodes an assignment as JSON that is also valid YAML with the same meaning. The
// manifest's text is unchanged byte for byte.
func EncodeAssignment(a Assignment) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(a); err != nil {
		return nil, fmt.Errorf("encode assignment: %w", err)
	}

	return escapeForYAML(b.Bytes()), nil
}

// EncodeJSON encodes JSON without escaping <, > and &, because the size of messages is limited.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)

	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// DecodeJSON decodes like json.Unmarshal in a third of the time. It returns the same errors, with a nil
// value.
func DecodeJSON[T any](data []byte) (*T, error) {
	out := new(T)
	if unmarshal(data, out) == nil {
		return out, nil
	}
	out = new(T)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, err
	}

	return out, nil
}

// unmarshal decodes like json.Unmarshal, with other errors.
func unmarshal(data []byte, into any) error {
	return jsonv2.Unmarshal(data, into, jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
}

// DecodeStrict decodes one JSON value. Fields that v does not have are an error.
func DecodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected text after the end of the document")
	}

	return nil
}

// escapeForYAML escapes characters that JSON allows in strings but YAML forbids or reads as line breaks.
func escapeForYAML(encoded []byte) []byte {
	special := func(r rune) bool {
		return r >= 0x7f && r <= 0x9f || r == '\ufeff' || r == '\ufffe' || r == '\uffff'
	}
	if !bytes.ContainsFunc(encoded, special) {
		return encoded
	}
	out := make([]byte, 0, len(encoded)+64)
	for _, r := range string(encoded) {
		if special(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}

	return out
}
