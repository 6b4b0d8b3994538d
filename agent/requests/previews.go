package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
	"github.com/musterfleet/muster/resources/document"
)

// Limits of the previews of a node.
const (
	// maxWaitingPreviews limits the previews that wait while one is made.
	maxWaitingPreviews = 16
	// maxKnownPreviews limits the remembered previews that have not expired.
	maxKnownPreviews = 100
)

// Reasons to reject a preview.
var (
	errID             = errors.New("a preview needs an id and must expire within " + model.MaxPreview.String())
	errOther          = errors.New("its id was used for another preview; use a new id")
	errTooMany        = errors.New("the node has too many previews; try again later")
	errPreviewExpired = errors.New("the preview expired")
	errProtocol       = errors.New("the protocol is not " + model.ProtocolPreviewRequest)
)

// BundleSource opens bundles of previews. They are stored apart from the bundles of assignments.
type BundleSource interface {
	GetPreviewBundle(ctx context.Context, id, digest string) (io.ReadCloser, error)
}

// PreviewOptions configure Previews.
type PreviewOptions struct {
	Node string
	// Open opens a message, which may be signed. It returns an error if the message is not accepted.
	Open func(ctx context.Context, data []byte) (content []byte, err error)
	// Untrusted records why the signature of a preview was not accepted.
	Untrusted func(why string)
	// Until returns the time until a preview expires.
	Until func(at time.Time) time.Duration
	// Expired returns an error once a preview has expired.
	Expired func(at time.Time) error
	Plan    func(ctx context.Context, req model.PreviewRequest) (*model.Plan, error)
	Log     *slog.Logger
}

// Previews answers preview requests. Its methods are safe for concurrent use. Create it with New; it
// makes plans while Run runs.
type Previews struct {
	o PreviewOptions
	// rejected limits the log lines about rejected previews, which any publisher can cause.
	rejected telemetry.RateLimitedLog
	waiting  chan *preview

	mu    sync.Mutex
	known map[string]*preview
}

type preview struct {
	req model.PreviewRequest
	sum string
	// last is the latest response; respond receives the later ones.
	last    model.EnsureResponse
	respond []func(model.EnsureResponse)
}

// New returns Previews without requests.
func New(o PreviewOptions) *Previews {
	return &Previews{o: o, waiting: make(chan *preview, maxWaitingPreviews), known: map[string]*preview{}}
}

// Preview accepts a preview request, and calls respond with each response: first that the request is
// acknowledged or why it is rejected, then each phase until the final one. respond must not block. A
// repeated request is not executed again: respond receives its latest response and the later ones.
func (s *Previews) Preview(ctx context.Context, _ *model.Sender, data []byte, respond func(model.EnsureResponse)) {
	var req model.PreviewRequest
	err := tasks.Guard(s.o.Log, "accepting a preview", func() (err error) {
		req, err = s.accept(ctx, data, respond)
		return err
	})
	if err == nil {
		return
	}
	s.rejected.Log(ctx, s.o.Log, slog.LevelWarn, "preview rejected", "id", req.ID, "error", err)
	response := s.response(req.ID, model.EnsureFailed)
	response.Error = err.Error()
	respond(response)
}

func (s *Previews) accept(ctx context.Context, data []byte, respond func(model.EnsureResponse)) (model.PreviewRequest, error) {
	content, err := s.o.Open(ctx, data)
	if err != nil {
		s.o.Untrusted(err.Error())
		return model.PreviewRequest{}, err
	}
	req, err := parsePreview(content)
	if err != nil {
		return req, err
	}
	left := s.o.Until(req.Expires)
	switch {
	case req.Expires.IsZero() || left > model.MaxPreview+time.Minute: // clocks differ
		return req, errID
	case left <= 0:
		return req, fmt.Errorf("%w: %w", errPreviewExpired, s.o.Expired(req.Expires))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := model.DigestOf(content)
	if known := s.known[req.ID]; known != nil {
		if known.sum != sum {
			return req, errOther
		}
		if !known.last.Phase.Final() {
			known.respond = withReceiver(known.respond, respond)
		}
		respond(known.last)
		return req, nil
	}
	s.forget()
	p := &preview{req: req, sum: sum, last: s.response(req.ID, model.EnsureAcknowledged), respond: []func(model.EnsureResponse){respond}}
	if len(s.known) >= maxKnownPreviews {
		return req, errTooMany
	}
	respond(p.last)
	select {
	case s.waiting <- p:
	default:
		return req, errTooMany
	}
	s.known[req.ID] = p

	return req, nil
}

// forget removes finished previews that have expired: no sender can repeat them.
func (s *Previews) forget() {
	for id, p := range s.known {
		if p.last.Phase.Final() && s.o.Until(p.req.Expires) <= 0 {
			delete(s.known, id)
		}
	}
}

// Run makes the plans one after the other until ctx ends.
func (s *Previews) Run(ctx context.Context) error {
	for {
		select {
		case p := <-s.waiting:
			s.answer(ctx, p)
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Previews) answer(ctx context.Context, p *preview) {
	s.respond(p, s.response(p.req.ID, model.EnsureRunning))
	response := s.response(p.req.ID, model.EnsureDone)
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Until(p.req.Expires), errPreviewExpired)
	defer cancel()
	err := tasks.Guard(s.o.Log, "previewing "+p.req.Name, func() (err error) {
		response.Plan, err = s.o.Plan(ctx, p.req)
		return err
	})
	switch {
	case ctx.Err() != nil:
		response.Phase, response.Plan = model.EnsureFailed, nil
		response.Error = context.Cause(ctx).Error()
		if errors.Is(context.Cause(ctx), errPreviewExpired) {
			response.Phase, response.Error = model.EnsureExpired, ""
		}
	case err != nil:
		response.Phase, response.Error = model.EnsureFailed, err.Error()
	case !response.Plan.OK():
		response.Phase = model.EnsureFailed
	}
	s.o.Log.InfoContext(ctx, "previewed", "manifest", p.req.Name, "id", p.req.ID, "phase", string(response.Phase))
	s.respond(p, response)
}

func (s *Previews) respond(p *preview, response model.EnsureResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.last = response
	for _, respond := range p.respond {
		respond(response)
	}
	if response.Phase.Final() {
		p.respond, p.req.Value = nil, ""
	}
}

func (s *Previews) response(id string, phase model.EnsurePhase) model.EnsureResponse {
	return model.EnsureResponse{Protocol: model.ProtocolPreviewResponse, Node: s.o.Node, ID: id, Phase: phase}
}

type source struct {
	desired.BundleSource
	id string
}

// Source returns the source that opens the bundle of the preview with this id. If of implements
// BundleSource, it opens the preview's bundle.
func Source(of desired.BundleSource, id string) desired.BundleSource { return source{of, id} }

// GetBundle opens the bundle with this digest.
func (s source) GetBundle(ctx context.Context, digest string) (io.ReadCloser, error) {
	if own, is := s.BundleSource.(BundleSource); is {
		return own.GetPreviewBundle(ctx, s.id, digest)
	}

	return s.BundleSource.GetBundle(ctx, digest)
}

func check(req model.PreviewRequest) error {
	switch {
	case req.Protocol != model.ProtocolPreviewRequest:
		return errProtocol
	case req.ID == "" || !model.IsRequestID(req.ID):
		return errID
	}
	if err := model.CheckName(req.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}

	return nil
}

// maxPlan limits the encoded length of a plan in bytes: operators collect the plans of thousands of
// nodes.
const maxPlan = 64 << 10

func parsePreview(data []byte) (req model.PreviewRequest, err error) {
	if _, problems := document.DecodeInto("preview", data, document.MaxBytes, &req); problems != nil {
		return model.PreviewRequest{}, problems
	}

	return req, check(req)
}

// NamesOf returns a replacer of node-specific texts in the locations of a plan, so that equal plans of
// different nodes are shown once. It replaces key, the name of the document, by name, and makes paths below
// dir relative.
func NamesOf(key, name, dir string) *strings.Replacer {
	if dir == "" {
		return strings.NewReplacer(key, name)
	}

	return strings.NewReplacer(dir+"/", "", key, name)
}

// Rejected returns the plan for a manifest that the node would reject.
func Rejected(problems model.Problems, names *strings.Replacer) *model.Plan {
	p := &model.Plan{}
	for _, problem := range problems.Sorted() {
		p.Errors = append(p.Errors, "would be rejected: "+names.Replace(problem.Error()))
	}

	return finish(p)
}

// Inactive returns the plan for a manifest that would not run.
func Inactive(why string) *model.Plan { return finish(&model.Plan{Inactive: why}) }

// Of returns the plan that a noop run predicts.
func Of(run *model.Run, all []*model.Transaction, names *strings.Replacer) *model.Plan {
	p := &model.Plan{Counts: run.Counts}
	reported := map[string]bool{}
	for _, t := range all {
		if t.OK() && !t.Changed {
			continue
		}
		for _, text := range t.Errors {
			reported[t.Label()+": "+text] = true
		}
		p.Transactions = append(p.Transactions, bare(t, names))
	}
	for _, text := range run.Errors {
		if !reported[text] {
			p.Errors = append(p.Errors, names.Replace(text))
		}
	}

	return finish(p)
}

// bare returns the parts of a transaction that are equal on all nodes with the same changes.
func bare(t *model.Transaction, names *strings.Replacer) model.Transaction {
	out := model.Transaction{
		Protocol: t.Protocol, Type: t.Type, Name: t.Name, Alias: t.Alias, RequestedEnsure: t.RequestedEnsure,
		NoopMessage: t.NoopMessage, Changed: t.Changed, Failed: t.Failed, Skipped: t.Skipped, Noop: t.Noop,
		UnmetRequirements: t.UnmetRequirements, Changes: slices.Clone(t.Changes), Source: t.Source, Within: t.Within,
		SkipReason: t.SkipReason, WouldRefresh: t.WouldRefresh, NotRun: t.NotRun,
	}
	out.Source.File = names.Replace(out.Source.File)
	for _, text := range t.Errors {
		out.Errors = append(out.Errors, names.Replace(text))
	}

	return out
}

// finish sets the digest of a plan, then cuts the plan to maxPlan: first it removes diffs from the
// end, then resources from the end.
func finish(p *model.Plan) *model.Plan {
	encoded, err := json.Marshal(p)
	if err != nil {
		encoded = fmt.Append(nil, err)
	}
	p.Digest = model.DigestOf(encoded)
	over := len(encoded) - maxPlan
	if over <= 0 {
		return p
	}
	p.Cut = true
	p.Errors = bounds.Errors(p.Errors, maxPlan/4)
	for i := len(p.Transactions) - 1; i >= 0 && over > 0; i-- {
		t := &p.Transactions[i]
		before := encodedLen(t)
		t.Errors = bounds.Errors(t.Errors, maxPlan/8)
		for j := range t.Changes {
			t.Changes[j].Diff = ""
		}
		over -= before - encodedLen(t)
	}
	for len(p.Transactions) > 0 && encodedLen(p) > maxPlan {
		p.Transactions = p.Transactions[:len(p.Transactions)*3/4]
	}

	return p
}

func encodedLen(v any) int {
	b, _ := json.Marshal(v) // the same value was encoded before

	return len(b)
}
