package kvstore

import (
	"net/url"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// authorHeader holds the author of a message, URL path-escaped.
const authorHeader = "Muster-By"

// maxAuthor limits an author name, in bytes. AuthorOf and SenderOf ignore longer names.
const maxAuthor = 200

// SetAuthor records the author in the headers of m. An empty name sets no header. The name is
// self-declared and is not verified.
func SetAuthor(m *nats.Msg, name string) {
	if name != "" {
		m.Header.Set(authorHeader, url.PathEscape(name))
	}
}

// AuthorOf returns the self-declared author of m, or "" if m has no readable author.
func AuthorOf(m Message) string {
	if m.Unreadable {
		return ""
	}

	return unescaped(m.Header, authorHeader, maxAuthor)
}

// nodesHeader holds the number of nodes that a request targets.
const nodesHeader = "Muster-Nodes"

// maxAsked is the highest node count that SenderOf accepts. No fleet is larger.
const maxAsked = 1_000_000

// toHeader holds the targets of a request and onHeader its target expression, URL path-escaped.
const (
	toHeader = "Muster-To"
	onHeader = "Muster-On"
)

// SetSender records the sender and the targets of a request in the headers of m. It omits a target or
// an expression longer than model.MaxTarget. The headers are self-declared and are not verified.
func SetSender(m *nats.Msg, s model.Sender) {
	SetAuthor(m, s.By)
	if s.Nodes > 0 {
		m.Header.Set(nodesHeader, strconv.Itoa(s.Nodes))
	}
	for header, text := range map[string]string{toHeader: s.To, onHeader: s.On} {
		if text != "" && len(text) <= model.MaxTarget {
			m.Header.Set(header, url.PathEscape(text))
		}
	}
}

// SenderOf returns the self-declared sender of a request, or nil if the headers name none. It ignores
// values that are too long or span several lines.
func SenderOf(h nats.Header) *model.Sender {
	out := model.Sender{By: lineOf(h, authorHeader, maxAuthor), To: lineOf(h, toHeader, model.MaxTarget), On: lineOf(h, onHeader, model.MaxTarget)}
	if nodes, err := strconv.Atoi(h.Get(nodesHeader)); err == nil && nodes > 0 && nodes <= maxAsked {
		out.Nodes = nodes
	}
	if out == (model.Sender{}) {
		return nil
	}

	return &out
}

// lineOf returns the unescaped text of a header, or "" if it is longer than most bytes or not a single line.
func lineOf(h nats.Header, name string, most int) string {
	if text := unescaped(h, name, most); model.IsLine(text) {
		return text
	}

	return ""
}

// unescaped returns the text of a URL path-escaped header, or "" if it is malformed or longer than most bytes.
func unescaped(h nats.Header, name string, most int) string {
	text, err := url.PathUnescape(h.Get(name))
	if err != nil || len(text) > most {
		return ""
	}

	return text
}
