package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/serve"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// serveCommand implements muster fleet serve.
type serveCommand struct {
	*cli.Env
	access AccessFlags
	listen string
	keep   time.Duration
	// webhooks is the file of webhooks, or empty.
	webhooks string
	// actions enables actions of operators; signPreviews signs their previews.
	actions, signPreviews bool
	Signing
}

// AddServe adds muster fleet serve.
func AddServe(env *cli.Env, parent *fisk.CmdClause) {
	c := &serveCommand{Env: env}
	cmd := parent.Command("serve", "Serve a dashboard of the fleet")
	cmd.HelpLong("Follows the states and reports of nodes, and serves them over HTTP until ctrl-C. It needs no files and no database, because it reads everything from NATS at its start. Several can run at the same time.\n\n  muster fleet serve\n  muster fleet serve --listen 127.0.0.1:9000 --for-history 72h")
	cmd.Flag("listen", "Address to serve at; beyond loopback it needs --tls-cert, and --tokens or --oidc-issuer").Default("127.0.0.1:8420").PlaceHolder("ADDRESS:PORT").StringVar(&c.listen)
	cmd.Flag("for-history", "Retain and show this much history").Default("24h").PlaceHolder("DURATION").DurationVar(&c.keep)
	cmd.Flag("webhooks", "File of webhooks that receive reports as CloudEvents").PlaceHolder("FILE").StringVar(&c.webhooks)
	cmd.Flag("actions", "Let users with the role operate pause, resume, run and preview nodes (previews run guards); needs --tokens or --oidc-issuer").UnNegatableBoolVar(&c.actions)
	cmd.Flag("sign-previews", "With --actions, also sign previews with --sign-key; users with the role operate can then run any command on nodes that trust the key").UnNegatableBoolVar(&c.signPreviews)
	c.AddSigning(cmd)
	c.access.Add(cmd)
	cmd.Action(env.Action(c.run))
}

// gcPercent is the garbage collection target, in percent of the live heap.
const gcPercent = 50

// Limits of --for-history.
const (
	minKeep = time.Hour
	maxKeep = 31 * 24 * time.Hour
)

func (c *serveCommand) run(ctx context.Context) error {
	if c.keep < minKeep || c.keep > maxKeep {
		return cli.Usagef("--for-history must be between %s and %s", minKeep, maxKeep)
	}
	c.SetLog(print.NewServiceLogger(c.Print.Err, c.Flags.LogFormat, print.Level(c.Flags.LogLevel)))
	options := c.access.Options(c.listen)
	if err := options.Validate(); err != nil {
		return cli.Usagef("%w", err)
	}
	if c.actions && !options.SignsIn() {
		return cli.Usagef("--actions needs sign-in: give --tokens FILE or --oidc-issuer URL")
	}
	signer, err := c.Open(c.Env)
	if err != nil {
		return err
	}
	if c.signPreviews && (!c.actions || signer == nil) {
		return cli.Usagef("--sign-previews needs --actions and --sign-key FILE")
	}
	guard, err := access.New(options, c.Log)
	if err != nil {
		return err
	}
	hooks, err := c.readWebhooks()
	if err != nil {
		return err
	}
	defer hooks.Close()
	store, err := Open(ctx, c.Env, NeedNodes, NeedManifests, NeedReports)
	if err != nil {
		return err
	}
	if err := hooks.Check(kvstore.NewReports(store.KV)); err != nil {
		return cli.Usagef("--webhooks: %w", err)
	}
	l, err := guard.Listen(ctx, serve.MaxConnections)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	// Most of the heap is long-lived, so limit the garbage more than the default does.
	debug.SetGCPercent(gcPercent)
	o := serve.Options{
		Store: servedStore(store.KV), Keep: c.keep, Webhooks: hooks, Version: cli.Version(), Log: c.Log,
	}
	if c.actions {
		o.Backend = func(paused func(node string) string) ask.Backend {
			return backend{store: store.KV, signer: signer, signsPreviews: c.signPreviews, log: c.Log, paused: paused, permissions: requests.NewPermissions(store.KV)}
		}
	}
	c.Print.Printf("%s\n", guard.URL(l))
	err = serve.Run(ctx, l, guard, o)
	if errors.Is(context.Cause(ctx), cli.ErrInterrupted) {
		return nil
	}

	return err
}

// servedStore returns the data of a fleet for package serve.
func servedStore(s *kvstore.Store) serve.Store {
	return serve.Store{
		Connection: s, Nodes: kvstore.NewNodes(s), Assignments: kvstore.NewAssignments(s), Reports: kvstore.NewReports(s),
		Control: kvstore.NewControl(s), Registrations: kvstore.NewRegistrations(s), Storage: requests.New(s),
	}
}

// maxWebhooksFile is the maximum size of the file of webhooks.
const maxWebhooksFile = 1 << 20

// readWebhooks reads the file of --webhooks. Other users must not be able to change the file, because it
// decides who receives the reports.
func (c *serveCommand) readWebhooks() (*webhook.Webhooks, error) {
	if c.webhooks == "" {
		return webhook.NewWebhooks("", nil)
	}
	data, err := files.ReadTrusted(c.webhooks, maxWebhooksFile, paths.Author{})
	if err != nil {
		return nil, cli.Usagef("--webhooks: %w", cli.FileError("file of webhooks", c.webhooks, err))
	}

	return webhook.NewWebhooks(c.webhooks, data)
}

// backend performs the actions of dashboard users on NATS.
type backend struct {
	store  *kvstore.Store
	signer *assign.Signing
	// signsPreviews signs previews. Previews run guards on nodes, from text that a user entered or that is in
	// the bucket.
	signsPreviews bool
	log           *slog.Logger
	// paused returns the control key that pauses a node, or an empty string.
	paused      func(node string) string
	permissions *requests.Permissions
}

// unsigned is the note for a change that replaces a signed value without a key.
const unsigned = "the previous value was signed and this one is not: nodes with trust.keys refuse it. Start muster fleet serve with --sign-key FILE"

func noteOf(w ask.PauseResult) string {
	if w.Unsigned {
		return unsigned
	}

	return ""
}

// Pause writes the pause of a family.
func (b backend) Pause(ctx context.Context, family string, p model.Pause) (string, error) {
	w, err := b.pauses(p.By, func(by ask.Pauses) (ask.PauseResult, error) { return by.Write(ctx, family, &p, "") })

	return noteOf(w), err
}

// Resume ends the pause of a family.
func (b backend) Resume(ctx context.Context, family, author string) (string, error) {
	from := ""
	if t, _, err := fleet.ParseKey(model.Key(family, "x")); err == nil && t.Node != "" {
		from = b.paused(t.Node)
	}
	w, err := b.pauses(author, func(by ask.Pauses) (ask.PauseResult, error) { return by.Write(ctx, family, nil, from) })

	return noteOf(w), err
}

// pauses writes or removes a pause. If NATS does not answer, the error states whether the change may have
// been written.
func (b backend) pauses(author string, write func(ask.Pauses) (ask.PauseResult, error)) (ask.PauseResult, error) {
	if err := b.store.Away(); err != nil {
		return ask.PauseResult{}, fmt.Errorf("%w (%w): not written", ask.ErrAway, err)
	}
	w, err := write(ask.Pauses{Bucket: kvstore.NewControl(b.store).By(author), Signer: b.signer})
	switch {
	case err == nil, !kvstore.IsOutage(err):
		return w, err
	case w.Sent:
		return w, fmt.Errorf("NATS does not answer: it may have been written, see the audit (%w)", err)
	default:
		return w, fmt.Errorf("NATS does not answer: not written (%w)", err)
	}
}

// CheckRequests returns why requests of a kind cannot reach nodes, or nil.
func (b backend) CheckRequests(k ask.Kind) error {
	verb, is := map[ask.Kind]string{ask.Run: kvstore.VerbRun, ask.Preview: kvstore.VerbPreview}[k]
	if !is {
		return nil
	}
	err := b.permissions.Check(verb)
	if errors.Is(err, requests.ErrRequestsNotPermitted) {
		return fmt.Errorf("the dashboard cannot send %s requests: %w; pause and resume work with --serve --actions", verb, err)
	}

	return err
}

// Run sends a run request to nodes in the name of a sender.
func (b backend) Run(ctx context.Context, from model.Sender, nodes []model.Node, req model.RunRequest, answered func(model.EnsureResponse)) (*ask.Ensured, error) {
	request := ask.Request{
		ID: req.ID, Network: RunAsker(b.store, b.signer, b.log, from, req, 0), Targets: targetsOf(nodes), Known: nodes, OnAnswer: answered,
		Protocol: model.ProtocolRunResponse, Reports: ReportsOf(b.store, req.ID, nil),
		OnUnread: func(err error) { b.log.Debug("cannot read the reports of the request", "error", err) },
	}

	return request.Send(ctx)
}

// Preview asks nodes for the changes of an assignment.
func (b backend) Preview(ctx context.Context, nodes []model.Node, req model.PreviewRequest, answered func(model.EnsureResponse)) (*ask.PreviewResult, error) {
	limit, done := context.WithDeadline(ctx, req.Expires.Add(PreviewGrace))
	defer done()
	remove, err := b.bundle(limit, req)
	if err != nil {
		return nil, err
	}
	defer remove()
	signer := b.signer
	if !b.signsPreviews {
		signer = nil
	}
	request := ask.Request{ID: req.ID, Network: NewPreviewAsker(b.store, signer, req, b.log), Targets: targetsOf(nodes), Known: nodes, OnAnswer: answered}
	answers, err := request.Send(limit)

	return ask.MergePreviews(answers), err
}

// bundle stores a copy of the bundle until the preview ends. Without permission to store it, nodes read the
// bundle of the assignment, which may be removed before they do.
func (b backend) bundle(ctx context.Context, req model.PreviewRequest) (remove func(), err error) {
	v, problems := document.DecodeAssignedContent(model.Key(model.GroupFamily(model.GroupAll), req.Name), []byte(req.Value))
	if problems != nil || v.Assignment.Bundle == "" || !b.store.API.InUse().IsOwn() {
		return func() {}, nil // nodes report problems
	}
	digest := v.Assignment.Bundle
	from, err := kvstore.NewContent(b.store).GetBundle(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	file, err := os.CreateTemp("", "muster-preview-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name()) // the system cleans up after a failed removal
	defer file.Close()
	if _, err := io.Copy(file, from); err != nil {
		return nil, err
	}

	return StoreBundle(ctx, b.store, b.log, req.ID, digest, file)
}

func targetsOf(nodes []model.Node) []fleet.Target {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Node
	}

	return fleet.Targets(names, nil, false)
}
