# fish completion for muster
function __muster_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (command muster --completion-bash $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c muster -f -a '(__muster_complete)'
