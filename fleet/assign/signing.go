package assign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// Signing signs for one fleet with its keys.
type Signing struct {
	// Fleet is the prefix of the fleet.
	Fleet string
	Keys  []*KeyFile
	// Valid is the time during which nodes accept a new signature.
	Valid time.Duration
	Log   *slog.Logger
	// Now returns the time.
	Now func() time.Time
}

// Sign returns the signed value of an action on a target: a key, or the family of a control document. content is empty
// for a removal. current is the value that it replaces, nil for none.
func (s *Signing) Sign(ctx context.Context, action signed.Action, target string, content, current []byte) ([]byte, error) {
	return s.sign(ctx, signed.Statement{Action: action, Target: target, Content: string(content)}, current)
}

// SignRequest returns a signed request to a family, valid until it expires.
func (s *Signing) SignRequest(ctx context.Context, action signed.Action, family string, content []byte, expires time.Time) ([]byte, error) {
	if expires.After(s.Now().Add(signed.MaxRequest)) {
		return nil, fmt.Errorf("a signed request is valid for at most %s", signed.MaxRequest)
	}

	return s.sign(ctx, signed.Statement{Action: action, Target: family, Content: string(content), Expires: expires}, nil)
}

// HasSigned reports whether the newest revision of a key is an assignment that is signed by all keys and
// valid for at least half of the time of a new signature, and that is not older than another revision or than
// the last signature of a key for this target. So it is no replay.
func (s *Signing) HasSigned(ctx context.Context, all []model.Entry) (bool, error) {
	now := all[len(all)-1]
	if !s.Signed(ctx, now, len(s.Keys)) {
		return false, nil
	}
	e, err := signed.Open(now.Value)
	if err != nil || now.Deleted || e.Statement.Expires.Sub(s.Now()) <= s.Valid/2 {
		return false, err
	}
	var last signed.Mark
	for _, earlier := range all[:len(all)-1] {
		if o, err := signed.Open(earlier.Value); err == nil && o.Statement.Issued.After(last.Issued) {
			last = signed.Mark{Issued: o.Statement.Issued, Sum: o.Sum}
		}
	}
	at, err := s.lastOf(now.Key)
	if at.After(last.Issued) {
		last = signed.Mark{Issued: at, Sum: e.Sum}
	}

	return err == nil && e.Fresh(s.Now(), last) == nil, err
}

// lastOf returns the time of the last signature for a target; zero means never or unknown.
func (s *Signing) lastOf(key string) (last time.Time, err error) {
	for _, k := range s.Keys {
		record, err := k.readLast()
		if err != nil {
			return last, err
		}
		if at := record.Targets[s.target(key)]; at.After(last) {
			last = at
		}
	}

	return last, nil
}

// Signed reports whether a revision has valid signatures of a number of the keys for its action.
func (s *Signing) Signed(ctx context.Context, e model.Entry, threshold int) bool {
	action, _, err := signed.Revision(e)
	if err != nil {
		return false
	}
	envelope, err := signed.Open(e.Value)
	if err != nil {
		return false
	}
	p := signed.Policy{Fleet: s.Fleet, Threshold: threshold}
	for _, k := range s.Keys {
		p.Keys = append(p.Keys, signed.Trusted{Key: k.Key()})
	}

	return p.Check(ctx, envelope, action, e.Key) == nil
}

// target returns the name of a fleet's key in the record of a signing key.
func (s *Signing) target(key string) string { return s.Fleet + "/" + key }

func (s *Signing) signers() []*signed.Signer {
	out := make([]*signed.Signer, len(s.Keys))
	for i, k := range s.Keys {
		out[i] = k.Signer
	}

	return out
}

// sign signs a statement with all keys, later than each earlier signature of a key and than the replaced
// value.
func (s *Signing) sign(ctx context.Context, statement signed.Statement, current []byte) ([]byte, error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	issued, err := s.next(current)
	if err != nil {
		return nil, err
	}
	statement.Fleet, statement.Issued = s.Fleet, issued
	if statement.Expires.IsZero() {
		statement.Expires = issued.Add(s.Valid)
	}
	if err := s.remember(ctx, statement); err != nil {
		return nil, err
	}

	return signed.Sign(ctx, statement, s.signers()...)
}

// lock prevents other processes from signing with the keys until unlock.
func (s *Signing) lock() (unlock func(), err error) {
	var unlocks []func()
	unlock = func() {
		for _, u := range unlocks {
			u()
		}
	}
	for _, k := range s.Keys {
		u, err := k.lock()
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, u)
	}

	return unlock, nil
}

// next returns the time of the next signature. The caller holds the locks of the keys.
func (s *Signing) next(current []byte) (time.Time, error) {
	now := s.Now().UTC()
	next := now
	later := func(than time.Time) {
		if !next.After(than) {
			next = than.Add(1)
		}
	}
	for _, k := range s.Keys {
		record, err := k.readLast()
		if err != nil {
			return next, err
		}
		before := record.Issued
		if before.After(now.Add(signed.MaxSkew)) {
			return next, fmt.Errorf("the clock is at %s, and %s signed at %s: set the clock, nodes accept no older signatures", now.Format(time.RFC3339), k.Path, before.UTC().Format(time.RFC3339))
		}
		later(before)
	}
	// The clock of another operator may be ahead, but not far.
	if e, err := signed.Open(current); err == nil && e.Statement.Issued.Before(now.Add(signed.MaxSkew/2)) {
		later(e.Statement.Issued.UTC())
	}

	return next, nil
}

// remember stores the time of the signature. If a key is on a read-only file system, only the clock prevents
// earlier signatures.
func (s *Signing) remember(ctx context.Context, statement signed.Statement) error {
	target := ""
	if !statement.Action.IsOfFamily() {
		target = s.target(statement.Target)
	}
	for _, k := range s.Keys {
		err := k.writeLast(ctx, statement.Issued, target)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			s.Log.Warn("cannot store the time of the key's last signature; after its clock is set back, nodes reject its signatures", "file", k.last, "error", err)
			continue
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// Proposal is the statement to sign for a revision. Users see only data from this statement.
type Proposal struct {
	// Statement is the statement to sign. Issued is zero for a new statement and is set at signing.
	Statement signed.Statement
	// By are the keys that have already signed it.
	By []signed.Key

	envelope *signed.Envelope // nil for a new statement
	current  []byte
}

// Propose returns the statement to sign for the newest revision of a key: the existing envelope if one of the
// keys has signed it, otherwise a new statement with its content. Any writer can change the bucket, so
// Propose accepts no other key or action than shown, and no time of another author beyond the times of a new
// signature.
func (s *Signing) Propose(ctx context.Context, e model.Entry, renew bool) (Proposal, error) {
	action, content, err := signed.Revision(e)
	if err != nil {
		return Proposal{}, err
	}
	asNew := Proposal{
		Statement: signed.Statement{Fleet: s.Fleet, Action: action, Target: e.Key, Content: string(content), Expires: s.Now().Add(s.Valid).UTC()},
		current:   e.Value,
	}
	if renew || !signed.IsEnvelope(e.Value) {
		return asNew, nil
	}
	envelope, err := signed.Open(e.Value)
	if err != nil {
		return Proposal{}, err
	}
	p := Proposal{Statement: envelope.Statement, By: envelope.Signers(ctx), envelope: envelope}
	if err := p.Statement.For(s.Fleet, action, e.Key); err != nil {
		return Proposal{}, err
	}
	if len(p.By) == 0 {
		return asNew, nil
	}

	return p, s.checkTimes(p)
}

// IsSigned reports whether all keys have signed a proposal.
func (s *Signing) IsSigned(p Proposal) bool {
	return p.envelope != nil && !slices.ContainsFunc(s.Keys, func(k *KeyFile) bool { return !slices.Contains(p.By, k.Key()) })
}

// checkTimes returns an error for times that a new signature would not have, unless one of the keys has
// signed them.
func (s *Signing) checkTimes(p Proposal) error {
	const remedy = "(sign it as new: --renew)"
	now := s.Now()
	last, err := s.lastOf(p.Statement.Target)
	if err != nil {
		return err
	}
	if err := p.envelope.Fresh(now, signed.Mark{Issued: last, Sum: p.envelope.Sum}); err != nil {
		return fmt.Errorf("%w %s", err, remedy)
	}
	if slices.ContainsFunc(s.Keys, func(k *KeyFile) bool { return slices.Contains(p.By, k.Key()) }) {
		return nil
	}
	// The clocks of two operators may differ.
	latest := now.Add(signed.MaxSkew / 2)
	switch {
	case p.Statement.Issued.After(latest):
		return fmt.Errorf("%w %s", signed.ErrFuture, remedy)
	case p.Statement.Expires.After(latest.Add(s.Valid)):
		return fmt.Errorf("it is valid for longer than --sign-expires, %s: give a longer one, or sign it as new (--renew)", s.Valid)
	default:
		return nil
	}
}

// SignProposal returns the signed value of a proposal.
func (s *Signing) SignProposal(ctx context.Context, p Proposal) ([]byte, error) {
	if p.envelope == nil {
		return s.sign(ctx, p.Statement, p.current)
	}
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another process may have signed since the proposal.
	if err := s.checkTimes(p); err != nil {
		return nil, err
	}
	if err := s.remember(ctx, p.Statement); err != nil {
		return nil, err
	}

	return p.envelope.Add(ctx, s.signers()...)
}

// maxSeed limits the bytes of a seed file.
const maxSeed = 4096

// NewKey creates a signing key in a new file that only its owner may read, and returns the public key. The
// error wraps fs.ErrExist if the file exists.
func NewKey(path string) (signed.Key, error) {
	seed, err := signed.NewSeed()
	if err != nil {
		return "", err
	}
	signer, err := signed.NewSigner(seed)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(seed, '\n'))

	return signer.Key(), errors.Join(err, f.Sync(), f.Close())
}

// KeyFile is a signing key in a file. The time of its last signature is in another file beside it.
type KeyFile struct {
	*signed.Signer
	Path string
	last string
}

// OpenKey reads a key. The error wraps signed.ErrKey, or paths.ErrUntrusted if other users may change the
// file. A file that other users may read is also an error.
func OpenKey(path string) (*KeyFile, error) {
	text, err := files.ReadTrusted(path, maxSeed, paths.Author{})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so other users may sign with it: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	signer, err := signed.NewSigner(bytes.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	return &KeyFile{signer, path, absolute + ".last"}, nil
}

// lastRecord is the stored time of a key's last signature.
type lastRecord struct {
	Issued time.Time `json:"issued"`
	// Targets contains the times for the last signed assignments, as fleet/key.
	Targets map[string]time.Time `json:"targets,omitempty"`
}

// maxTargets limits the stored assignments.
const maxTargets = 1000

// readLast returns the time of the key's last signature; zero means never.
func (k *KeyFile) readLast() (lastRecord, error) {
	l, err := host.ReadRecord[lastRecord](k.last)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}

	return l, err
}

// writeLast stores the time of a signature, and its target unless that is empty. The time never decreases.
// The caller holds the lock of the key.
func (k *KeyFile) writeLast(ctx context.Context, at time.Time, target string) error {
	l, err := k.readLast()
	if err != nil {
		return err
	}
	if at.After(l.Issued) {
		l.Issued = at
	}
	if l.Targets == nil {
		l.Targets = map[string]time.Time{}
	}
	if target != "" && at.After(l.Targets[target]) {
		l.Targets[target] = at
	}
	if len(l.Targets) > maxTargets {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(l.Targets)), func(a, b string) int { return l.Targets[a].Compare(l.Targets[b]) })
		delete(l.Targets, oldest)
	}

	return host.New(host.Options{}).WriteRecord(ctx, k.last, l)
}

// lock prevents other processes from signing with the key until unlock.
func (k *KeyFile) lock() (unlock func(), err error) {
	f, err := os.Open(k.Path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return func() { _ = f.Close() }, nil // which unlocks
}
