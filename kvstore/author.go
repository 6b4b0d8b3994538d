package kvstore

import (
	"net/url"

	"github.com/nats-io/nats.go"
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
