package assign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"syscall"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
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

// Assignment returns the signed value of a key. current is the current assignment, nil for none.
func (s *Signing) Assignment(ctx context.Context, key string, content, current []byte) ([]byte, error) {
	return s.sign(ctx, signed.Statement{Action: signed.Assign, Target: key, Content: string(content)}, current)
}

// Removal returns the signed removal of a key. current is the current assignment, nil for none.
func (s *Signing) Removal(ctx context.Context, key string, current []byte) ([]byte, error) {
	return s.sign(ctx, signed.Statement{Action: signed.Remove, Target: key}, current)
}

// Request returns an ensure request to a family, signed until it expires.
func (s *Signing) Request(ctx context.Context, family string, request []byte, expires time.Time) ([]byte, error) {
	return s.request(ctx, signed.Statement{Action: signed.Ensure, Target: family, Content: string(request), Expires: expires})
}

// Run returns a run request to a family, signed until it expires.
func (s *Signing) Run(ctx context.Context, family string, request []byte, expires time.Time) ([]byte, error) {
	return s.request(ctx, signed.Statement{Action: signed.Run, Target: family, Content: string(request), Expires: expires})
}

// Preview returns a preview request to a family, signed until it expires.
func (s *Signing) Preview(ctx context.Context, family string, request []byte, expires time.Time) ([]byte, error) {
	return s.request(ctx, signed.Statement{Action: signed.Preview, Target: family, Content: string(request), Expires: expires})
}

// Cancel returns the signed cancel of a request of a family, valid until it expires.
func (s *Signing) Cancel(ctx context.Context, family string, cancel []byte, expires time.Time) ([]byte, error) {
	return s.request(ctx, signed.Statement{Action: signed.Cancel, Target: family, Content: string(cancel), Expires: expires})
}

func (s *Signing) request(ctx context.Context, statement signed.Statement) ([]byte, error) {
	if statement.Expires.After(s.Now().Add(signed.MaxRequest)) {
		return nil, fmt.Errorf("a signed request is valid for at most %s", signed.MaxRequest)
	}

	return s.sign(ctx, statement, nil)
}

// Pause returns the signed pause of a family, Resume its signed end. current is the current value of the
// control key, nil for none.
func (s *Signing) Pause(ctx context.Context, family string, pause, current []byte) ([]byte, error) {
	return s.sign(ctx, signed.Statement{Action: signed.Pause, Target: family, Content: string(pause)}, current)
}

// Resume returns the signed end of a pause, see Pause.
func (s *Signing) Resume(ctx context.Context, family string, current []byte) ([]byte, error) {
	return s.sign(ctx, signed.Statement{Action: signed.Resume, Target: family}, current)
}

// Groups returns the signed groups of a node. current is the current value of the control key, nil for none.
func (s *Signing) Groups(ctx context.Context, family string, groups, current []byte) ([]byte, error) {
	return s.sign(ctx, signed.Statement{Action: signed.Groups, Target: family, Content: string(groups)}, current)
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
