#compdef muster
# zsh completion for muster
_muster() {
    local answer line word
    local -a found
    # It fails where no file is meant either.
    answer=$(command muster --completion-described "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null) || return 1
    # Behind a tab is what a word is for; a colon is what zsh has there.
    for line in "${(@f)answer}"; do
        word=${line%%$'\t'*}
        found+=("${${word#--*=}//:/\\:}${${line#"$word"}/$'\t'/:}")
    done
    compset -P 1 '--*='
    if [[ -z $answer ]]; then
        _files
    else
        _describe -t names muster found
    fi
}
# zsh loads this file as the function, or reads it.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _muster "$@"
else
    compdef _muster muster
fi
