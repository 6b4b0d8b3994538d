package requests

import (
	"context"
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Queued returns the queued requests with an id, by family. It skips unreadable requests, which nodes
// never execute. The error wraps model.ErrNotFound if the stream does not exist.
func (s Client) Queued(ctx context.Context, id string) (map[string][]byte, error) {
	names, token := s.store.Names(), kvstore.Token(id)
	listed, err := s.store.Subjects(ctx, names.Commands(), names.Command("*.*", token))
	if err != nil {
		return nil, err
	}
	before, _, _ := strings.Cut(names.Command("*.*", token), "*")
	out := map[string][]byte{}
	for subject := range listed.Subjects {
		family := strings.TrimSuffix(strings.TrimPrefix(subject, before), "."+token)
		if model.CheckFamily(family) != nil {
			continue
		}
		m, err := (&commands{store: s.store}).read(ctx, subject)
		switch {
		case err != nil:
			return nil, err
		case m != nil && !m.Forged:
			out[family] = m.Data
		}
	}

	return out, nil
}
