// Package provision creates, updates and checks the buckets and streams of a fleet, which
// kvstore.Names.Streams describes. It also prints the permissions and accounts of its users.
package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
)

// Defaults for new streams.
const (
	defaultReportAge      = 7 * 24 * time.Hour
	defaultReportBytes    = 1 << 30
	defaultReportCount    = 240
	mostRegistrationBytes = 256 << 20
	mostControlBytes      = 128 << 20
)

// Options are the sizes that an operator chooses. Zero means the default for a new stream, and no
// change for an existing one.
type Options struct {
	// Replicas is the number of replicas of every bucket and stream. The default is 1.
	Replicas int
	// ReportAge and ReportBytes limit the stream of reports. The defaults are 7 days and 1 GiB.
	ReportAge   time.Duration
	ReportBytes int64
	// ReportCount and ReportMax limit the reports of one node: the number of messages per kind and
	// outcome, and the size of one. The defaults are 240 and 64 KiB. They also apply to an existing
	// stream without a limit.
	ReportCount, ReportMax int64
	// StateMax limits the state of a node, and its facts. The default is 512 KiB, also for an existing
	// bucket without a limit.
	StateMax int64
	// RegistrationBytes limits the stream of registrations, because every reader reads all of it. The
	// default is a quarter of ReportBytes, but at most 256 MiB, also for an existing stream without a
	// limit.
	RegistrationBytes int64
	// ManifestBytes and CommandBytes limit the bucket of assignments and the stream of queued
	// requests, so that a user who fills one leaves room for the others. The default is no limit.
	ManifestBytes, CommandBytes int64
	// ControlBytes limits the bucket of control documents, which are small. The default is a quarter
	// of ReportBytes, but at most 128 MiB. It also applies to an existing bucket without a limit that
	// holds no more than that.
	ControlBytes int64
	// BundleBytes limits the store of bundles. The default is no limit.
	BundleBytes int64
	// OnlyRegistrations selects only the stream of registrations.
	OnlyRegistrations bool
}

func (o Options) withDefaults() Options {
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.ReportAge = cmp.Or(o.ReportAge, defaultReportAge)
	o.ReportBytes = cmp.Or(o.ReportBytes, defaultReportBytes)
	o.ReportCount = cmp.Or(o.ReportCount, defaultReportCount)
	o.ReportMax = cmp.Or(o.ReportMax, kvstore.DefaultReportMax)
	o.RegistrationBytes = cmp.Or(o.RegistrationBytes, min(o.ReportBytes/4, mostRegistrationBytes))
	o.ControlBytes = cmp.Or(o.ControlBytes, min(o.ReportBytes/4, mostControlBytes))
	o.StateMax = cmp.Or(o.StateMax, kvstore.DefaultStateMax)

	return o
}

// desired returns the buckets and streams with the chosen sizes, in the order of their creation.
func desired(n kvstore.Names, o Options) []kvstore.Stream {
	var all []kvstore.Stream
	for _, s := range n.Streams() {
		s.Config.Replicas = o.Replicas
		switch s.Config.Name {
		case n.Reports:
			s.Config.MaxAge, s.Config.MaxBytes = o.ReportAge, o.ReportBytes
			s.Config.MaxMsgsPer, s.Config.MaxMsgSize = o.ReportCount, int32(o.ReportMax)
		case n.Registrations:
			s.Config.MaxBytes = o.RegistrationBytes
		case kvstore.KVStream(n.Nodes):
			s.Config.MaxMsgSize = int32(o.StateMax)
		case kvstore.KVStream(n.Manifests):
			s.Config.MaxBytes = o.ManifestBytes
		case kvstore.KVStream(n.Control):
			s.Config.MaxBytes = o.ControlBytes
		case n.Commands:
			s.Config.MaxBytes = o.CommandBytes
		case kvstore.ObjectStream(n.Bundles):
			s.Config.MaxBytes = o.BundleBytes
		}
		if !o.OnlyRegistrations || s.Config.Name == n.Registrations {
			all = append(all, s)
		}
	}

	return all
}

// Provisioner provisions a fleet.
type Provisioner struct{ store *kvstore.Store }

// New returns a Provisioner for the fleet of s.
func New(s *kvstore.Store) Provisioner { return Provisioner{s} }

// Share returns the size limits of the stream of reports in bytes: for one node, and for all nodes.
// Zero or less means no limit.
func (p Provisioner) Share(ctx context.Context) (node, all int64, err error) {
	found, err := p.store.Infos(ctx, "")
	if err != nil {
		return 0, 0, err
	}
	info, err := found.Of(p.store.Names.Reports)
	if err != nil {
		return 0, 0, err
	}
	c := info.Config

	return int64(len(c.Subjects)) * max(c.MaxMsgsPer, 0) * int64(max(c.MaxMsgSize, 0)), c.MaxBytes, nil
}

var (
	// ErrShrink reports a change that would lose data or that the server cannot make. Nothing was
	// changed.
	ErrShrink = errors.New("refused to change")
	// ErrUnchecked reports that the servers of an unneeded bucket or stream do not answer.
	ErrUnchecked = errors.New("its servers do not answer: it is not checked")
	// ErrDiffers reports a setting that differs but that muster can work with. The remedy is the same
	// as for model.ErrNotProvisioned.
	ErrDiffers = errors.New("NATS is not set up as muster sets it up")
)

// Difference describes the required change of one bucket or stream.
type Difference struct {
	// Stream is the name of the stream behind the bucket.
	Stream string `json:"stream"`
	// Create reports whether the stream is missing.
	Create bool `json:"create,omitempty"`
	// Changes are the settings of an existing stream that differ.
	Changes []Change `json:"changes,omitempty"`

	config api.StreamConfig
}

// String returns the difference in one line.
func (d Difference) String() string {
	if d.Create {
		return "create " + d.Stream
	}
	lines := make([]string, len(d.Changes))
	for i, c := range d.Changes {
		lines[i] = c.String()
	}

	return "change " + d.Stream + ": " + strings.Join(lines, "; ")
}

// Plan returns what Apply would do, and changes nothing. The error wraps kvstore.ErrFormat for a
// bucket or stream in an unknown format.
func (p Provisioner) Plan(ctx context.Context, o Options) ([]Difference, error) {
	// A node may list streams but not change them, so this call fails before Apply changes anything.
	if err := connect.CheckServer(p.store.Conn.ConnectedServerVersion()); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	found, err := p.store.Infos(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	differences, unanswered, err := p.differences(found, o)
	if err != nil {
		return nil, err
	}
	if len(unanswered) > 0 {
		_, err := found.Of(unanswered[0])
		return nil, err
	}
	// The list of streams has found the JetStream API prefix.
	at := p.store.API.InUse()
	if _, err := p.store.Request(ctx, at.StreamInfo(p.store.Names.Registrations), nil); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}

	return differences, nil
}

// differences compares the streams that were found with the desired ones. It also returns the streams
// whose servers do not answer.
func (p Provisioner) differences(found kvstore.Infos, o Options) (differences []Difference, unanswered []string, err error) {
	created, all := desired(p.store.Names, o.withDefaults()), desired(p.store.Names, o)
	isUnfinished := slices.ContainsFunc(all, func(want kvstore.Stream) bool {
		_, err := found.Of(want.Config.Name)
		return errors.Is(err, model.ErrNotFound)
	})
	var unknown []error
	for i, want := range all {
		name := want.Config.Name
		info, err := found.Of(name)
		switch {
		case errors.Is(err, model.ErrNotFound):
			differences = append(differences, Difference{Stream: name, Create: true, config: created[i].Config})
			continue
		case err != nil:
			unanswered = append(unanswered, name)
			continue
		}
		unknown = append(unknown, kvstore.CheckFormat(info.Config, want.Config))
		changes, config := compare(info.Config, withBounds(want.Config, info.Config, created[i].Config, info.State.Bytes), info.State.Bytes)
		if isUnfinished && info.State.Msgs == 0 {
			allowShrink(changes)
		}
		if len(changes) > 0 {
			differences = append(differences, Difference{Stream: name, Changes: changes, config: config})
		}
	}
	if err := errors.Join(unknown...); err != nil {
		return nil, nil, fmt.Errorf("no changes made: %w", err)
	}

	return differences, unanswered, nil
}

// Check returns an error unless every bucket and stream exists and is configured as muster needs it.
// The error wraps model.ErrNotProvisioned if something is missing or unusable, ErrDiffers if
// everything is usable, or kvstore.ErrFormat. It names every difference. Nodes have the permission to
// check.
//
// Check waits while a needed stream elects a leader. The error wraps kvstore.ErrUnanswered if the
// servers of a needed stream do not answer. If the servers of another stream do not answer, Check
// skips that stream, and the error wraps ErrUnchecked unless something else is wrong.
func (p Provisioner) Check(ctx context.Context, needed ...string) error {
	found, err := p.survey(ctx, needed)
	if err != nil {
		return err
	}
	differences, unanswered, err := p.differences(found, Options{})
	if err != nil {
		return err
	}
	unchecked := error(nil)
	if len(unanswered) > 0 {
		unchecked = fmt.Errorf("stream %s: %w", strings.Join(unanswered, ", "), ErrUnchecked)
	}
	optional := map[string]bool{}
	for _, s := range p.store.Names.Streams() {
		optional[s.Config.Name] = s.Optional
	}
	var wrong []string
	kind := ErrDiffers
	for _, d := range differences {
		if d.Create {
			wrong = append(wrong, d.Stream+" is missing")
			if !optional[d.Stream] {
				kind = model.ErrNotProvisioned
			}
		}
		for _, c := range d.Changes {
			wrong = append(wrong, fmt.Sprintf("%s: %s", d.Stream, c))
			if !c.optional {
				kind = model.ErrNotProvisioned
			}
		}
	}
	if len(wrong) == 0 {
		return unchecked
	}
	err = fmt.Errorf("%w, run `%s`: %s", kind, p.store.Names.Run("fleet init"), strings.Join(wrong, "; "))
	if unchecked != nil {
		err = fmt.Errorf("%w; %w", err, unchecked)
	}

	return err
}

// Apply creates missing streams, changes those that differ, and returns what it did. If one change is
// refused, Apply changes nothing, and the error wraps ErrShrink and names every refused change. The
// error wraps kvstore.ErrNoRoom if the server lacks room. Apply then waits until every new replica has all
// messages. The error wraps ErrReplicas if one has not after five minutes, or at once if nothing changed.
func (p Provisioner) Apply(ctx context.Context, o Options) ([]Difference, error) {
	differences, err := p.Plan(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := refusals(differences); err != nil {
		return nil, err
	}
	at := p.store.API.InUse()
	m, err := jsm.New(p.store.Conn, jsm.WithTimeout(kvstore.RequestTimeout), jsm.WithAPIPrefix(string(at)))
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	for i, d := range differences {
		if err := ctx.Err(); err != nil {
			return differences[:i], err
		}
		if err := applyDifference(m, d); err != nil {
			return differences[:i], fmt.Errorf("%s: %w", d, err)
		}
	}

	within := copying
	if len(differences) == 0 {
		within = 0
	}

	return differences, p.awaitReplicas(ctx, o, within)
}

func refusals(differences []Difference) error {
	var refused []error
	for _, d := range differences {
		for _, c := range d.Changes {
			if c.Refused != "" {
				refused = append(refused, fmt.Errorf("%s: %s", d.Stream, c))
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}

	return fmt.Errorf("%w: %w", ErrShrink, errors.Join(refused...))
}

func applyDifference(m *jsm.Manager, d Difference) error {
	if d.Create {
		_, err := m.NewStreamFromDefault(d.Stream, d.config)
		return roomError(err)
	}
	stream, err := m.LoadStream(d.Stream)
	if err != nil {
		return err
	}

	return roomError(stream.UpdateConfiguration(d.config))
}

// roomError wraps err with kvstore.ErrNoRoom if the server lacks room.
func roomError(err error) error {
	const (
		insufficientResources = 10023
		tooManyStreams        = 10027
		insufficientStorage   = 10047
		noLimits              = 10120
		tooManyBytes          = 10122
	)
	for _, code := range []uint16{insufficientResources, insufficientStorage, tooManyStreams, noLimits, tooManyBytes} {
		if jsm.IsNatsError(err, code) {
			return fmt.Errorf("%w: %w", kvstore.ErrNoRoom, err)
		}
	}

	return err
}

const (
	// electing is how long survey waits for the election of a leader. The server itself waits four
	// seconds for elections of streams.
	electing = 8 * time.Second
	// electingPause is the pause before each retry.
	electingPause = 250 * time.Millisecond
)

// survey returns all streams. It waits while JetStream or a needed stream elects a leader.
func (p Provisioner) survey(ctx context.Context, needed []string) (kvstore.Infos, error) {
	for end := time.Now().Add(electing); ; {
		found, err := p.store.Survey(ctx)
		if err != nil {
			err = fmt.Errorf("provision: %w", err)
		} else {
			err = checkAnswered(found, needed)
		}
		// "No responders" means that JetStream is missing, not that it elects a leader.
		mayPass := kvstore.IsOutage(err) && !errors.Is(err, nats.ErrNoResponders) && p.store.Away() == nil
		if !mayPass || !time.Now().Before(end) {
			return found, err
		}
		if kvstore.Pause(ctx, electingPause) != nil {
			return found, err
		}
	}
}

// checkAnswered returns an error if the servers of a needed stream do not answer. It ignores missing
// streams.
func checkAnswered(found kvstore.Infos, needed []string) error {
	for _, stream := range needed {
		if _, err := found.Of(stream); errors.Is(err, kvstore.ErrUnanswered) {
			return err
		}
	}

	return nil
}

// userInfo is a subject on which every server with a system account returns the connected user.
const userInfo = "$SYS.REQ.USER.INFO"

// Account returns the account of the connection, which may be a public key if the server uses JWTs. It
// returns "" if the server does not answer.
func (p Provisioner) Account(ctx context.Context) string {
	reply, err := p.store.Request(ctx, userInfo, nil)
	if err != nil {
		return ""
	}
	var info struct {
		Data struct {
			Account string `json:"account"`
			Name    string `json:"account_name"`
		} `json:"data"`
	}
	if json.Unmarshal(reply.Data, &info) != nil {
		return ""
	}

	return cmp.Or(info.Data.Name, info.Data.Account)
}
