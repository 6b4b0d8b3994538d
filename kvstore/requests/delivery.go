package requests

import (
	"strings"

	"github.com/nats-io/nats.go"
)

// isDelivery reports whether the server sent a message from a stream or as a status, judged by its
// reply subject and headers. A node that may read commands can make the server send one to the request
// subject of another node. Nodes therefore reject such messages on request subjects.
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

// serverHeaders returns the headers that the server adds to stored messages. No client sets them in a
// request.
func serverHeaders() []string {
	return []string{
		nats.JSStream, nats.JSSequence, nats.JSTimeStamp, nats.JSSubject, nats.JSLastSequence,
		"Nats-Num-Pending", "Nats-UpTo-Sequence", "Nats-Marker-Reason", "Nats-Stream-Source", "Nats-Msg-Size",
		"Nats-Pending-Messages", "Nats-Pending-Bytes", "Nats-Last-Consumer", "Nats-Last-Stream", "Nats-Consumer-Stalled",
		"Status",
	}
}
