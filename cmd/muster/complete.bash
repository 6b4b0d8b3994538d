# bash completion for muster
_muster_bash_autocomplete() {
    local IFS=$' \t\n' rest=$COMP_LINE word trimmed cur found prefix i
    local -a words=()
    COMPREPLY=()
    # bash splits words at = and :, as COMP_WORDBREAKS says; what has no space between is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        trimmed=${rest#"${rest%%[![:space:]]*}"}
        if ((i > 0)) && [[ $trimmed == "$rest" ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        rest=${trimmed#"$word"}
    done
    # Quotes are as they were typed, and may be open.
    words=("${words[@]//[\"\'\\]/}")
    cur=${words[${#words[@]} - 1]}
    # Files are meant where nothing is found; it fails where they are not.
    found=$("${words[0]}" --completion-bash "${words[@]:1}" 2>/dev/null) && [[ -z $found ]] || compopt +o default 2>/dev/null
    COMPREPLY=($(compgen -W "$found" -- "$cur"))
    # Where the value is a word of its own to bash, it replaces that alone.
    if [[ $cur == *=* && $COMP_WORDBREAKS == *=* ]]; then
        prefix=${cur%"${cur##*=}"}
        for i in "${!COMPREPLY[@]}"; do
            COMPREPLY[i]=${COMPREPLY[i]#"$prefix"}
        done
    fi
}
complete -F _muster_bash_autocomplete -o default muster
