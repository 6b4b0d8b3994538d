package manifest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/expr-lang/expr/vm"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// phase is how far the data are when an expression is evaluated.
type phase uint8

const (
	// inData is within the data themselves, where Data is not known yet.
	inData phase = iota
	inResources
)

// scope is what expressions see at one time. It is used by one goroutine.
type scope struct {
	session *session
	phase   phase
	machine vm.VM
	// plain and masked are the names, the latter with every secret masked.
	plain, masked names
	// secrets are those in Data and the outputs.
	secrets []model.Secret
	// outputs are those of what ran before; nil while nothing runs.
	outputs resource.Outputs
	// broken says that the data have problems of their own: what rests on them says nothing new.
	broken bool
	// work is what the loops of the evaluation came to so far.
	work int64
	*evaluation
}

// evaluation is what is the same when an expression is evaluated a second time,
// with its secrets masked: what differs then differs because of them.
type evaluation struct {
	again template.Again
	// clock is what time it is, once somebody asked.
	clock time.Time
	// made says that a secret was made.
	made bool
}

func (e *evaluation) begin() {
	e.again.First()
	e.clock, e.made = time.Time{}, false
}

// now is the function now.
func (e *evaluation) now() time.Time {
	if e.clock.IsZero() {
		e.clock = time.Now().Round(0)
	}

	return e.clock
}

// lateError says that an expression can only be evaluated when a resource has had its turn.
type lateError struct {
	ref model.Ref
	// others are further resources that it waits for.
	others []model.Ref
	// outputs says that it takes the outputs of ref, not a file that this makes.
	outputs bool
}

func (e lateError) Error() string { return e.ref.String() + " must have run before" }

// scope makes what expressions see. data may hold model.Secret.
func (s *session) scope(ctx context.Context, p phase, data map[string]any, outputs resource.Outputs) *scope {
	sc := &scope{session: s, phase: p, outputs: outputs, evaluation: &evaluation{}}
	plainData, maskedData := reveal(data, &sc.secrets)
	plainOut, maskedOut := revealOutputs(outputs, &sc.secrets)
	s.learn(sc.secrets...)
	sc.plain = s.names(ctx, p, plainData, plainOut, sc.evaluation, false)
	sc.masked = s.names(ctx, p, maskedData, maskedOut, sc.evaluation, true)
	step := func(v any) (any, error) { return sc.step(ctx, v) }
	sc.plain[nameStep], sc.masked[nameStep] = step, step

	return sc
}

// learn notes secrets, for whoever must recognise them in the texts of others.
func (s *session) learn(secrets ...model.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range secrets {
		if !s.isKnown[secret] {
			s.isKnown[secret] = true
			s.secrets = append(s.secrets, secret)
		}
	}
}

// learnt gives the secrets noted so far, each once.
func (s *session) learnt() []model.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.secrets)
}

func revealOutputs(outputs resource.Outputs, found *[]model.Secret) (plain, masked map[model.Ref]any) {
	if outputs == nil {
		return nil, nil
	}
	plain, masked = make(map[model.Ref]any, len(outputs)), make(map[model.Ref]any, len(outputs))
	for ref, values := range outputs {
		plain[ref], masked[ref] = reveal(values, found)
	}

	return plain, masked
}

// hasSecrets says that there are any among what expressions see.
func (sc *scope) hasSecrets() bool { return len(sc.secrets) > 0 }

// failure is an expression that gives no value.
type failure struct {
	message, hint string
	// late are the resources to wait for; then it is no failure.
	late []model.Ref
	// file says that the first of them is waited for because of a file it makes.
	file bool
	// missing is a file that was to be read and is not there.
	missing string
	// known says that it was reported already.
	known bool
	// sure says that it fails on every node: a template that is not valid.
	sure bool
}

// run evaluates an expression. On success f is nil. secret says that masked
// holds what came of it without the secrets.
func (sc *scope) run(ctx context.Context, p *program, extra map[string]any) (v, masked any, secret bool, f *failure) {
	switch {
	case p.message != "":
		return nil, nil, false, &failure{message: p.message, hint: p.hint}
	case len(p.refs) > 0 && sc.phase == inData:
		return nil, nil, false, &failure{message: errNoOutputs.Error(), hint: noOutputsHint}
	case p.names[nameData] && sc.phase == inData:
		return nil, nil, false, &failure{message: errNoData.Error(), hint: noDataHint}
	case len(p.refs) > 0 && sc.outputs == nil:
		return nil, nil, false, &failure{late: p.refs}
	}
	sc.begin()
	v, err := sc.call(ctx, p, sc.plain, extra)
	var late lateError
	if errors.As(err, &late) {
		return nil, nil, false, &failure{late: slices.Concat([]model.Ref{late.ref}, late.others, p.refs), file: !late.outputs}
	}
	if !sc.made && !sc.hasSecrets() {
		return v, nil, false, sc.session.failed(err)
	}
	sc.again.Second()
	masked, maskedErr := sc.call(ctx, p, sc.masked, extra)
	switch {
	case err != nil && maskedErr == nil:
		// What the error says may be the secret itself.
		return nil, nil, false, &failure{message: "fails for the secret value it is given"}
	case err != nil:
		return nil, nil, false, sc.session.failed(maskedErr)
	case maskedErr != nil:
		return v, nil, true, nil
	}

	return v, masked, true, nil
}

// call runs a program with the names it needs.
func (sc *scope) call(ctx context.Context, p *program, with names, extra map[string]any) (any, error) {
	if p.names[nameFacts] {
		facts, err := sc.session.getFacts(ctx)
		if err != nil {
			return nil, fmt.Errorf("facts: %w", err)
		}
		with[nameFacts] = facts
	}
	for k, v := range extra {
		with[k] = v
	}
	sc.work = 0
	v, err := sc.machine.Run(p.Program, map[string]any(with))
	if err == nil && v == nil {
		if path, known, is := p.missing(with); is {
			return nil, hintedError{fmt.Errorf("`%s` is not set", path), missingHint(path, known)}
		}
	}

	return v, err
}
