package kvtest

import (
	"encoding/json"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
)

// Outgoing returns a report as a node hands it over.
func Outgoing(node, kind string, outcome model.Outcome, seq uint64) model.Report {
	return model.Report{ID: ksuid.New().String(), Type: model.ProtocolRun, Node: node, Kind: kind, Outcome: outcome, Time: time.Now(), Seq: seq, Data: json.RawMessage(`{"node":"` + node + `"}`)}
}
