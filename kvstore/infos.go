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

// ErrUnanswered reports a stream whose servers do not answer, because a majority is away or they elect
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

// hasUnanswered reports whether the servers of a stream do not answer.
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
func (s *Store) Infos(ctx context.Context, subject string) (Infos, error) {
	found := Infos{}
	offset := 0
	for {
		page, err := s.infoPage(ctx, subject, offset)
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
func (s *Store) infoPage(ctx context.Context, subject string, offset int) (*api.JSApiStreamListResponse, error) {
	body, err := json.Marshal(api.JSApiStreamListRequest{JSApiIterableRequest: api.JSApiIterableRequest{Offset: offset}, Subject: subject})
	if err != nil {
		return nil, err
	}

	return findAPI(ctx, s.places, func(ctx context.Context, prefix APIPrefix) (*api.JSApiStreamListResponse, error) {
		return s.listStreams(ctx, prefix, body)
	})
}

// listStreams requests a page of streams at an API prefix.
func (s *Store) listStreams(ctx context.Context, prefix APIPrefix, body []byte) (*api.JSApiStreamListResponse, error) {
	reply, err := s.Request(ctx, prefix.StreamList(), body)
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
}

// streamListType is the type of the answer to a list request.
const streamListType = "io.nats.jetstream.api.v1.stream_list_response"

// leader returns the name of the server that leads a stream.
func (s *Store) leader(info *api.StreamInfo) string {
	if info.Cluster != nil && info.Cluster.Leader != "" {
		return info.Cluster.Leader
	}

	return s.nc.ConnectedServerName()
}

// StreamAge returns the creation time and the last sequence of a stream with a subject. A recreated
// stream counts from 1, and a restored one continues from an older sequence. The error wraps
// model.ErrNotFound.
func (s *Store) StreamAge(ctx context.Context, stream, subject string) (created time.Time, last uint64, err error) {
	info, err := s.info(ctx, stream, subject)
	if err != nil {
		return time.Time{}, 0, err
	}

	return info.Created, info.State.LastSeq, nil
}

// LastStored is the time of the last message of a stream.
type LastStored = model.LastStored

// LastStored returns the time of the last message of each given stream. The error wraps
// model.ErrNotFound or ErrUnanswered.
func (s *Store) LastStored(ctx context.Context, streams ...string) ([]LastStored, error) {
	found, err := s.Infos(ctx, "")
	if err != nil {
		return nil, err
	}
	out := make([]LastStored, len(streams))
	for i, stream := range streams {
		info, err := found.Of(stream)
		if err != nil {
			return nil, err
		}
		out[i] = LastStored{Stream: stream, Server: s.leader(info), At: info.State.LastTime, Now: info.TimeStamp}
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
func (s *Store) SilentServers(ctx context.Context) (map[string]time.Time, error) {
	found, err := s.Infos(ctx, "")
	if err != nil {
		return nil, err
	}

	return found.silent(), nil
}

// LastSilentServers returns the result of SilentServers at the last Survey. It sends no request.
func (s *Store) LastSilentServers() map[string]time.Time {
	if last := s.silent.Load(); last != nil {
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

// StreamEnd returns the last sequence of a stream with a subject, or 0 if it is empty. The leader
// answers, unlike for direct gets, which a lagging or disconnected server answers from what it has.
// The error wraps model.ErrNotFound.
func (s *Store) StreamEnd(ctx context.Context, stream, subject string) (uint64, error) {
	info, err := s.info(ctx, stream, subject)
	if err != nil || info.State.Msgs == 0 {
		return 0, err
	}

	return info.State.LastSeq, nil
}

func (s *Store) info(ctx context.Context, stream, subject string) (*api.StreamInfo, error) {
	found, err := s.Infos(ctx, subject)
	if err != nil {
		return nil, err
	}

	return found.Of(stream)
}
