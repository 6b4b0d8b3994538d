package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/model"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the archive type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...ArchiveProvider) *resource.Type { return resource.Of(Type{}, providers...) }

// Info describes the type.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:       "archive",
		Summary:    "Archives: fetched, unpacked, and removed again",
		NameHelp:   "the absolute path of the archive, for example /var/cache/app.tar.gz",
		Argument:   "url",
		Ensures:    []string{model.EnsurePresent, model.EnsureAbsent},
		EnsureHelp: "absent removes the archive; unpacked files stay",
		Outputs:    []resource.Output{{Name: checksumValue, Help: "SHA-256 of the archive in hex, also after cleanup"}},
		Reads:      resource.Paths | resource.Accounts,
		Writes:     resource.Paths,
		OwnTimeout: true,
	}
}

// New returns properties with their defaults.
func (Type) New() *Spec { return &Spec{MaxSize: DefaultMaxSize} }

// checksumValue is the name of the only output.
const checksumValue = "checksum"

// Apply fetches, unpacks and removes as planned. The pending extraction is
// recorded before the archive is placed, and cleared afterwards.
func (Type) Apply(ctx context.Context, env resource.Env, p ArchiveProvider, spec *Spec, plan resource.Plan) (outcome resource.Outcome, err error) {
	checksum := ""
	if plan.Has(actionDownload) {
		if checksum, err = download(ctx, env, p, spec); err != nil {
			return outcome, err
		}
		outcome.Values = map[string]any{checksumValue: checksum}
	}
	if plan.Has(actionExtract) {
		if err := extract(ctx, env, p, spec, checksum); err != nil {
			return outcome, err
		}
	}
	switch {
	case plan.Has(actionCleanup):
		err = cleanUp(env, spec)
	case plan.Has(actionRemove):
		if err = env.Host.Remove(spec.Name); err == nil {
			err = env.Host.Forget(records, spec.Name)
		}
	}

	return outcome, err
}

// cleanUp keeps an archive that did not make its creates path: otherwise every
// run would fetch it. Verify reports that.
func cleanUp(env resource.Env, spec *Spec) error {
	created, err := env.Host.Follow(spec.Creates)
	if err != nil || created.Kind == files.Absent {
		return err
	}

	return env.Host.Remove(spec.Name)
}

func download(ctx context.Context, env resource.Env, p ArchiveProvider, spec *Spec) (checksum string, err error) {
	attrs, err := attributes(ctx, env, spec)
	if err != nil {
		return "", err
	}

	// Not in the return statement: Go may evaluate checksum there before the call.
	err = p.Download(ctx, env, spec, attrs, func(arrived string) error {
		checksum = arrived
		if err := spec.CheckSum(arrived); err != nil || spec.ExtractParent == "" {
			return err
		}
		return remember(ctx, env.Host, record{Archive: spec.Name, Checksum: arrived})
	})

	return checksum, err
}

// extract unpacks the downloaded archive, or with no checksum the existing one.
func extract(ctx context.Context, env resource.Env, p ArchiveProvider, spec *Spec, downloaded string) error {
	format, err := spec.ArchiveFormat()
	if err != nil {
		return err
	}
	content, err := hostarchive.Open(ctx, env.Host.Disk, spec.Name, format)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := spec.CheckSum(content.Checksum); err != nil {
		return err
	}
	if spec.Checksum == "" && content.Checksum != downloaded && content.Foreign != nil {
		return content.Foreign
	}
	r := record{Archive: spec.Name, Checksum: content.Checksum}
	if content.Checksum != downloaded {
		// A partial extraction may make the creates path.
		if err := remember(ctx, env.Host, r); err != nil {
			return err
		}
	}
	if err := rememberTarget(ctx, env.Host, spec, unpacked{Archive: spec.Name, Checksum: content.Checksum, Run: env.RunID}); err != nil {
		return err
	}
	err = p.Extract(ctx, env, spec, content)
	if errors.Is(err, hostarchive.ErrLeadsOut) {
		err = fmt.Errorf("%w (set links: keep to create the link as it is)", err)
	}
	switch {
	case errors.Is(err, hostarchive.ErrNotArchive) && spec.Checksum == "":
		r.Invalid = true
		return errors.Join(fmt.Errorf("%w; the next run fetches it again", err), remember(ctx, env.Host, r))
	case isRefused(err) && spec.Checksum == "":
		return fmt.Errorf("%w; the archive stays and is not fetched again: remove %s to fetch it again, or set checksum", err, spec.Name)
	case err != nil:
		return err
	}
	r.Extracted = true

	return remember(ctx, env.Host, r)
}

// isRefused reports whether a valid archive was refused.
func isRefused(err error) bool {
	return slices.ContainsFunc([]error{hostarchive.ErrUnsafeEntry, hostarchive.ErrEntryType, files.ErrTooLarge, hostarchive.ErrTooManyEntries}, func(refusal error) bool { return errors.Is(err, refusal) })
}

// Verify checks that no change is due, and explains a wrong creates.
func (t Type) Verify(spec *Spec, outcome resource.Outcome, after *State) error {
	plan, err := t.Plan(spec, after, false)
	arrived, fetched := outcome.Values[checksumValue]
	switch {
	case err != nil:
		return err
	case spec.Ensure != model.EnsureAbsent && spec.Creates != "" && !after.Metadata.CreatesExists && !plan.Has(actionDownload):
		kept := ""
		if spec.Cleanup {
			kept = "; the archive stays until it does"
		}
		return fmt.Errorf("%s was unpacked into %s, but %s is missing: `creates` must name a path in the archive%s", spec.Name, spec.ExtractParent, spec.Creates, kept)
	case !plan.Empty():
		return fmt.Errorf("still due: %s", plan.Message())
	case fetched && after.Entry.Kind == files.File && after.Metadata.Checksum != arrived:
		return fmt.Errorf("it changed after the download: its checksum is %s, not %s", after.Metadata.Checksum, arrived)
	}

	return nil
}

// Outputs returns the checksum, also of a cleaned-up archive.
func (Type) Outputs(spec *Spec, state *State, outcome resource.Outcome) map[string]any {
	checksum, arrived := outcome.Values[checksumValue].(string)
	switch {
	case arrived:
	case state.Metadata.Checksum != "":
		checksum = state.Metadata.Checksum
	case state.past.Extracted:
		checksum = state.past.Checksum
	default:
		checksum = spec.wantedChecksum()
	}
	if checksum == "" {
		return nil
	}

	return map[string]any{checksumValue: checksum}
}
