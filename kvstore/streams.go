package kvstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// Limits that the server enforces.
const (
	// MaxCommandTTL limits how long a command waits for a node, and how long a node remembers executed
	// commands.
	MaxCommandTTL = 24 * time.Hour
	// MaxRegistrationAge limits how long the server stores a registration, unless its TTL is "never".
	MaxRegistrationAge = 366 * 24 * time.Hour

	// DefaultReportMax is the default size limit of a report in bytes, including headers.
	DefaultReportMax = 64 << 10
	// DefaultStateMax is the default size limit of a state, and of facts, in bytes.
	DefaultStateMax = 512 << 10

	// maxRegistration limits a registration in bytes. Annotations may use half of it.
	maxRegistration = 32 << 10

	// maxControl limits a control document in bytes, including signatures and headers.
	maxControl = 64 << 10

	// HistorySize is the number of revisions per key in the buckets of assignments, data and control
	// documents.
	HistorySize = 16

	// reportWindow is how long the stream of reports remembers message ids. A report may be published
	// twice after a lost acknowledgement, a killed agent or an outage of a minute, and is stored once.
	// The server keeps the ids in memory, even those of a flooding node.
	reportWindow = 2 * time.Minute
	// shortestWindow is the shortest time that the server supports. In all other streams, a repeated
	// message replaces the first one.
	shortestWindow = 100 * time.Millisecond
)

// Placeholders in the subjects of a Stream.
const (
	// AnyNode stands for the id of a node.
	AnyNode = "<node>"
	// AnyFamily stands for each family of a node.
	AnyFamily = "<family>"
)

// Stream describes a bucket or stream of a fleet: its configuration, and what a node may do with it.
// Provisioning, checks and permissions derive from it.
type Stream struct {
	// Config has zero sizes and replicas where an operator chooses them.
	Config api.StreamConfig
	// Optional reports whether a fleet works without the stream.
	Optional bool
	// Writes are the subjects on which a node publishes.
	Writes []string
	// Reads are the subjects whose newest message a node may read by direct get.
	Reads []string
	// ReadsAll reports whether a node may read every message by sequence.
	ReadsAll bool
	// Lists reports whether a node may list all subjects of the stream. NATS cannot restrict the list
	// to the node's own subjects. It shows no message.
	Lists bool
}

// Streams returns every bucket and stream of the fleet in the order of their creation.
func (n Names) Streams() []Stream {
	manifests := bucketConfig(n.Manifests, "Manifests assigned to nodes and groups", HistorySize)
	manifests.RePublish = &api.RePublish{Source: KVSubject(n.Manifests, ">"), Destination: n.Changed(">"), HeadersOnly: true}
	manifests.Metadata[FormatKey] = secondFormat
	// A rollup of one key would let an operator of one group remove all others.
	manifests.RollupAllowed = false

	control := bucketConfig(n.Control, "What operators write about nodes: pause, labels", HistorySize)
	control.RePublish = &api.RePublish{Source: KVSubject(n.Control, "*.*.*"), Destination: n.ControlChanged("{{wildcard(1)}}.{{wildcard(2)}}", "{{wildcard(3)}}"), HeadersOnly: true}
	control.RollupAllowed, control.MaxMsgSize = false, maxControl

	nodes := bucketConfig(n.Nodes, "Status and facts of nodes", 1)
	nodes.AllowMsgTTL = true
	// With a rollup of its own key, a node could remove the keys of other nodes.
	nodes.RollupAllowed = false

	bundles := streamConfig(ObjectStream(n.Bundles), "Bundles: manifests with their files", "$O."+n.Bundles+".C.>", "$O."+n.Bundles+".M.>")
	bundles.Discard, bundles.RollupAllowed = api.DiscardNew, true

	reports := streamConfig(n.Reports, "Reports of nodes, as CloudEvents", n.ReportSubjects("*")...)
	reports.DenyDelete, reports.Compression, reports.Duplicates = true, api.S2Compression, reportWindow

	commands := streamConfig(n.Commands, "Requests queued for nodes that are away", n.Command("*.*", "*"))
	commands.RePublish = &api.RePublish{Source: n.Prefix + ".command.>", Destination: n.Changed("command.>"), HeadersOnly: true}
	commands.Metadata[FormatKey] = secondFormat
	commands.Discard = api.DiscardNew
	commands.MaxAge, commands.AllowMsgTTL = MaxCommandTTL, true

	registrations := streamConfig(n.Registrations, "Services registered by nodes", n.Registration("*", "*", "*", "*", "*", "*"))
	registrations.MaxMsgSize = maxRegistration
	registrations.MaxMsgsPer, registrations.MaxAge, registrations.AllowMsgTTL = 1, MaxRegistrationAge, true

	return []Stream{
		{Config: manifests, Reads: []string{KVSubject(n.Manifests, model.Key(AnyFamily, ">"))}, Lists: true},
		{Config: bucketConfig(n.Data, "Hierarchical data of manifests", HistorySize), Reads: []string{KVSubject(n.Data, ">")}},
		{Config: nodes, Writes: []string{n.NodeState(AnyNode), n.NodeFacts(AnyNode), n.NodeInventory(AnyNode)}, Reads: []string{n.NodeState(AnyNode)}},
		// The chunks of a bundle can be requested only by sequence.
		{Config: bundles, Reads: []string{"$O." + n.Bundles + ".M.>"}, ReadsAll: true},
		{Config: reports, Writes: []string{n.Report(AnyNode, "*", "*")}},
		{Config: commands, Reads: []string{n.Command(AnyFamily, ">")}, Lists: true},
		{Config: registrations, Optional: true, Writes: []string{n.Registration("*", "*", "*", AnyNode, "*", "*")}, ReadsAll: true},
		{Config: control, Optional: true, Reads: []string{KVSubject(n.Control, model.Key(AnyFamily, ">"))}, Lists: true},
	}
}

func streamConfig(name, description string, subjects ...string) api.StreamConfig {
	return api.StreamConfig{
		Name:         name,
		Description:  description,
		Subjects:     subjects,
		Retention:    api.LimitsPolicy,
		Storage:      api.FileStorage,
		Discard:      api.DiscardOld,
		MaxMsgs:      -1,
		MaxMsgsPer:   -1,
		MaxMsgSize:   -1,
		MaxConsumers: -1,
		Duplicates:   shortestWindow,
		AllowDirect:  true,
		Metadata:     map[string]string{FormatKey: firstFormat},
	}
}

// bucketConfig returns the configuration of a key-value bucket that NATS clients understand.
func bucketConfig(bucket, description string, history int64) api.StreamConfig {
	cfg := streamConfig(KVStream(bucket), description, KVSubject(bucket, ">"))
	cfg.MaxMsgsPer = history
	cfg.Discard = api.DiscardNew
	cfg.RollupAllowed, cfg.DenyDelete = true, true

	return cfg
}

// ErrUnanswered reports that the servers of a stream do not answer, because a majority is away or they elect
// a leader. See IsOutage.
var ErrUnanswered = errors.New("its servers do not answer")

// Infos maps stream names to their infos. The info is nil if the servers of the stream do not answer.
type Infos map[string]*api.StreamInfo

// Of returns the info of a stream. The error wraps model.ErrNotFound or ErrUnanswered.
func (i Infos) Of(stream string) (*api.StreamInfo, error) {
	info, listed := i[stream]
	switch {
	case !listed:
		return nil, fmt.Errorf("stream %s: %w", stream, model.ErrNotFound)
	case info == nil:
		return nil, fmt.Errorf("stream %s: %w", stream, ErrUnanswered)
	default:
		return info, nil
	}
}

func (i Infos) hasUnanswered() bool {
	for _, info := range i {
		if info == nil {
			return true
		}
	}

	return false
}

// Infos returns the streams of the account with a subject, or all streams if subject is empty. It uses
// the list of streams, which nodes may request: unlike the info of a single stream, the list never
// contains keys.
func (c *Connection) Infos(ctx context.Context, subject string) (Infos, error) {
	found := Infos{}
	offset := 0
	for {
		page, err := c.infoPage(ctx, subject, offset)
		if err != nil {
			return nil, fmt.Errorf("list streams: %w", err)
		}
		before := len(found)
		for _, info := range page.Streams {
			if info == nil {
				return nil, fmt.Errorf("list streams: %w: a stream without info", ErrWrongAnswer)
			}
			found[info.Config.Name] = info
		}
		for _, name := range page.Missing {
			found[name] = nil
		}
		// Total includes the missing streams.
		shown := len(page.Streams) + len(page.Missing)
		if offset += shown; len(found) == before || offset >= page.Total {
			return found, nil
		}
	}
}

// infoPage requests a page at each API prefix until one answers.
func (c *Connection) infoPage(ctx context.Context, subject string, offset int) (*api.JSApiStreamListResponse, error) {
	body, err := json.Marshal(api.JSApiStreamListRequest{JSApiIterableRequest: api.JSApiIterableRequest{Offset: offset}, Subject: subject})
	if err != nil {
		return nil, err
	}

	return findAPI(ctx, c.API, func(ctx context.Context, prefix APIPrefix) (*api.JSApiStreamListResponse, error) {
		reply, err := c.Request(ctx, prefix.StreamList(), body)
		if err != nil {
			return nil, err
		}
		var resp api.JSApiStreamListResponse
		err = json.Unmarshal(reply.Data, &resp)
		switch {
		case err != nil || resp.Type != streamListType && resp.Error == nil:
			return nil, errNotJetStream
		case resp.Error != nil && resp.Error.ErrCode == uint16(jetstream.JSErrCodeJetStreamNotEnabledForAccount):
			return nil, ErrNoJetStream
		}
		return &resp, resp.ToError()
	})
}

const streamListType = "io.nats.jetstream.api.v1.stream_list_response"

func (c *Connection) leader(info *api.StreamInfo) string {
	if info.Cluster != nil && info.Cluster.Leader != "" {
		return info.Cluster.Leader
	}

	return c.Conn.ConnectedServerName()
}

// LastStored returns the time of the last message of each given stream. The error wraps
// model.ErrNotFound or ErrUnanswered.
func (c *Connection) LastStored(ctx context.Context, streams ...string) ([]model.LastStored, error) {
	found, err := c.Infos(ctx, "")
	if err != nil {
		return nil, err
	}
	out := make([]model.LastStored, len(streams))
	for i, stream := range streams {
		info, err := found.Of(stream)
		if err != nil {
			return nil, err
		}
		out[i] = model.LastStored{Stream: stream, Server: c.leader(info), At: info.State.LastTime, Now: info.TimeStamp}
		if info.State.Msgs == 0 {
			out[i].At = info.Created
		}
		if out[i].Now.IsZero() { // a server without a cluster omits its time
			out[i].Now = time.Now()
		}
	}

	return out, nil
}

// silentAfter is the time without messages after which a server counts as hung or away. The servers of
// a stream exchange a message each second.
const silentAfter = 5 * time.Second

// SilentServers returns the servers that do not answer the leaders of their streams, with the time of
// their last answer. A new leader without any answer counts from its election.
func (c *Connection) SilentServers(ctx context.Context) (map[string]time.Time, error) {
	found, err := c.Infos(ctx, "")
	if err != nil {
		return nil, err
	}

	return found.silent(), nil
}

// LastSilentServers returns the result of SilentServers at the last Survey. It sends no request.
func (c *Connection) LastSilentServers() map[string]time.Time {
	if last := c.silent.Load(); last != nil {
		return *last
	}

	return nil
}

// silent returns the silent servers, see Store.SilentServers.
func (i Infos) silent() map[string]time.Time {
	alive, silent, names := map[string]bool{}, map[string]time.Time{}, map[string]string{} // silent and names by peer id, alive by server name
	for _, info := range i {
		if info == nil || info.Cluster == nil {
			continue
		}
		alive[info.Cluster.Leader] = true
		for _, replica := range info.Cluster.Replicas {
			if !strings.Contains(replica.Name, " ") { // such as "Server name unknown at this time"
				names[replica.Peer] = replica.Name
			}
			since, isSilent := silence(info, replica)
			if !isSilent {
				alive[replica.Name] = true
			}
			if info.TimeStamp.Sub(since) > silentAfter && since.After(silent[replica.Peer]) {
				silent[replica.Peer] = since
			}
		}
	}
	out := map[string]time.Time{}
	for peer, since := range silent {
		if name := cmp.Or(names[peer], peer); !alive[name] {
			out[name] = since
		}
	}

	return out
}

// silence returns since when a replica does not answer the leader of its stream.
func silence(info *api.StreamInfo, replica *api.PeerInfo) (since time.Time, isSilent bool) {
	switch {
	case replica.Active > silentAfter:
		return info.TimeStamp.Add(-replica.Active), true
	case replica.Active == 0 && !replica.Current && info.Cluster.LeaderSince != nil:
		return *info.Cluster.LeaderSince, true
	default:
		return info.TimeStamp, false
	}
}

// Listing describes a stream according to its leader: the creation time, the first and the last
// sequence, and the subjects that match a filter. The first sequence of an empty stream is above the last.
type Listing struct {
	Created     time.Time
	First, Last uint64
	Subjects    map[string]bool
}

// Subjects lists the subjects of a stream that match a filter, including those with only a removal.
// The leader answers, and no consumer is created. The error wraps model.ErrNotFound or ErrWrongAnswer.
func (s *Store) Subjects(ctx context.Context, stream, filter string) (Listing, error) {
	failed := func(err error) (Listing, error) {
		return Listing{}, fmt.Errorf("list %s of %s: %w", filter, stream, s.refused.count(err))
	}
	if err := s.Bind(ctx, stream); err != nil {
		return failed(err)
	}
	out := Listing{Subjects: map[string]bool{}}
	for {
		body, err := json.Marshal(api.JSApiStreamInfoRequest{JSApiIterableRequest: api.JSApiIterableRequest{Offset: len(out.Subjects)}, SubjectsFilter: filter})
		if err != nil {
			return failed(err)
		}
		reply, err := s.Request(ctx, s.API.InUse().StreamInfo(stream), body)
		if err != nil {
			return failed(err)
		}
		info, err := decodeSubjects(stream, filter, reply.Data)
		if err != nil {
			return failed(err)
		}
		if out.Created.IsZero() {
			out.Created, out.First, out.Last = info.Created, info.State.FirstSeq, info.State.LastSeq
		}
		if !info.Created.Equal(out.Created) {
			return failed(errors.New("the stream was recreated during the list, try again"))
		}
		before := len(out.Subjects)
		for subject := range info.State.Subjects {
			out.Subjects[subject] = true
		}
		if len(out.Subjects) == before || len(out.Subjects) >= info.Total {
			return out, nil
		}
	}
}

// decodeSubjects decodes the info of a stream. The error wraps ErrWrongAnswer if the info is of
// another stream or lists a subject outside filter, and model.ErrNotFound if the stream does not
// exist.
func decodeSubjects(stream, filter string, data []byte) (*api.JSApiStreamInfoResponse, error) {
	info, err := model.DecodeJSON[api.JSApiStreamInfoResponse](data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongAnswer, err)
	}
	switch {
	case info.Error != nil && info.Error.ErrCode == uint16(jetstream.JSErrCodeStreamNotFound):
		return nil, fmt.Errorf("%w: %w", model.ErrNotFound, info.Error)
	case info.Error != nil:
		return nil, info.ToError()
	case info.Type != streamInfoType || info.StreamInfo == nil || info.Config.Name != stream:
		return nil, fmt.Errorf("%w: it is no info of the stream", ErrWrongAnswer)
	}
	for subject := range info.State.Subjects {
		if !SubjectMatches(subject, filter) {
			return nil, fmt.Errorf("%w: it lists %s", ErrWrongAnswer, subject)
		}
	}

	return info, nil
}

const streamInfoType = "io.nats.jetstream.api.v1.stream_info_response"
