package kvstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/musterfleet/muster/model"
)

// Newest returns the newest report of a node for each kind and outcome, the newest first. A batch
// contributes all its reports. The number of reads does not depend on what the node publishes. The
// error wraps an ErrInvalidEvent for each unreadable report, and the readable ones are returned
// anyway. It wraps model.ErrInvalidName for an invalid node.
func (s Reports) Newest(ctx context.Context, node string) ([]model.Report, error) {
	if err := model.CheckNode(node, nil); err != nil {
		return nil, err
	}
	subjects := s.store.Names().ReportSubjects(node)
	found, failed := make([][]model.Report, len(subjects)), make([]error, len(subjects))
	var reading sync.WaitGroup
	for i, subject := range subjects {
		reading.Go(func() { found[i], failed[i] = s.newestOf(ctx, subject) })
	}
	reading.Wait()
	all := slices.Concat(found...)
	slices.SortStableFunc(all, func(a, b model.Report) int { return b.Time.Compare(a.Time) })

	return all, errors.Join(failed...)
}

// newestOf returns the reports of the newest message of a subject, or none.
func (s Reports) newestOf(ctx context.Context, subject string) (all []model.Report, failed error) {
	m, err := s.store.Last(ctx, s.store.Names().Reports(), subject)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return nil, nil
	case errors.Is(err, ErrUnreadable):
		return nil, fmt.Errorf("%w on %s: %w", ErrInvalidEvent, subject, err)
	case err != nil:
		return nil, err
	}
	return s.reportsOf(m)
}

// reportsOf returns the readable reports of a message.
func (s Reports) reportsOf(m Message) (all []model.Report, failed error) {
	for r, err := range decodeReports(s.store.Names(), m) {
		if err != nil {
			failed = err
			continue
		}
		all = append(all, r)
	}

	return all, failed
}
