package requests

import (
	"strings"

	"github.com/nats-io/nats.go"
)

// isDelivery reports, by its reply subject and headers, whether the server sent a
// message, out of a stream or as a status. A node that may read a command may have
// it sent anywhere, also to where another node listens: no such message is accepted
// from a live subject. What a node drains itself arrives at its own inbox.
func isDelivery(reply string, header nats.Header) bool {
	if strings.HasPrefix(reply, "$JS.") {
		return true
	}
	for _, name := range serverHeaders() {
		if _, found := header[name]; found {
			return true
		}
	}

	return false
}

// serverHeaders are those that the server adds to what it sends out of a stream; no
// client that publishes a request has a use for one.
func serverHeaders() []string {
	return []string{
		nats.JSStream, nats.JSSequence, nats.JSTimeStamp, nats.JSSubject, nats.JSLastSequence,
		"Nats-Num-Pending", "Nats-UpTo-Sequence", "Nats-Marker-Reason", "Nats-Stream-Source", "Nats-Msg-Size",
		"Nats-Pending-Messages", "Nats-Pending-Bytes", "Nats-Last-Consumer", "Nats-Last-Stream", "Nats-Consumer-Stalled",
		"Status",
	}
}
