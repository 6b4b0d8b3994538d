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
	name, err := url.PathUnescape(m.Header.Get(authorHeader))
	if err != nil || len(name) > maxAuthor || m.Unreadable {
		return ""
	}

	return name
}

// nodesHeader is how many nodes a request is for.
const nodesHeader = "Muster-Nodes"

// maxAsked is how many nodes a request may be for: no fleet has more.
const maxAsked = 1_000_000

// SetSender names in a request whoever sends it, for people: nobody verifies it.
func SetSender(m *nats.Msg, s model.Sender) {
	SetAuthor(m, s.By)
	if s.Nodes > 0 {
		m.Header.Set(nodesHeader, strconv.Itoa(s.Nodes))
	}
}

// SenderOf returns who sent a request, as its headers say; nil where they do not. It is one line, and
// not long.
func SenderOf(h nats.Header) *model.Sender {
	out := model.Sender{}
	if name, err := url.PathUnescape(h.Get(authorHeader)); err == nil && len(name) <= maxAuthor && model.IsLine(name) {
		out.By = name
	}
	if nodes, err := strconv.Atoi(h.Get(nodesHeader)); err == nil && nodes > 0 && nodes <= maxAsked {
		out.Nodes = nodes
	}
	if out == (model.Sender{}) {
		return nil
	}

	return &out
}
