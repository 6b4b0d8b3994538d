# fish completion for muster
function __muster_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    # The quote that the last word begins with may be open.
    set -l word (string unescape -- $typed; or string unescape -- $typed\"; or string unescape -- $typed\'; or echo $typed)
    # It fails where no file is meant either.
    set -l found (command muster --completion-described $words[2..-1] "$word" 2>/dev/null)
    or return
    if set -q found[1]
        printf '%s\n' $found
    else
        # A path may be the value behind a flag, in one word.
        set -l flag (string match -r -- '^--[^=]*=' $typed; or echo)
        string join \n -- $flag(complete -C "'' "(string replace -- $flag '' $typed))
    end
end
complete -c muster -f -a '(__muster_complete)'
