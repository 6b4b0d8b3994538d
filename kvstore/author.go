package kvstore

import (
	"net/url"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// authorHeader names whoever wrote a key; it is escaped as a part of a URL.
const authorHeader = "Muster-By"

// maxAuthor is how many bytes of a name are read.
const maxAuthor = 200

// SetAuthor names in a message whoever writes it, for people: nobody verifies it. An empty name is
// none.
func SetAuthor(m *nats.Msg, name string) {
	if name != "" {
		m.Header.Set(authorHeader, url.PathEscape(name))
	}
}

// AuthorOf returns who wrote a message, as they said; empty where they did not.
func AuthorOf(m Message) string {
	if m.Unreadable {
		return ""
	}

	return unescaped(m.Header, authorHeader, maxAuthor)
}

// nodesHeader is how many nodes a request is for.
const nodesHeader = "Muster-Nodes"

// maxAsked is how many nodes a request may be for: no fleet has more.
const maxAsked = 1_000_000

// toHeader and onHeader are whom a request is for, escaped as the name is: targets, or an expression.
const (
	toHeader = "Muster-To"
	onHeader = "Muster-On"
)

// SetSender names in a request whoever sends it and whom it is for, for people: nobody verifies it. A target
// that is long is left out.
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

// SenderOf returns who sent a request, as its headers say; nil where they do not. It is one line, and
// not long.
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

// lineOf returns the text of a header; empty where it is not one line, or long.
func lineOf(h nats.Header, name string, most int) string {
	if text := unescaped(h, name, most); model.IsLine(text) {
		return text
	}

	return ""
}

// unescaped returns the text of a header that is escaped as a part of a URL; empty where it is not, or long.
func unescaped(h nats.Header, name string, most int) string {
	text, err := url.PathUnescape(h.Get(name))
	if err != nil || len(text) > most {
		return ""
	}

	return text
}
