import { Argument, type Command } from 'commander';

/** Scripts for shells. They run the command `complete` to get candidates. */
const SCRIPTS = {
  bash: `# Completion of nodepool-builder for bash 4.4 or later, written by "nodepool-builder completion bash".
_nodepool_builder() {
  local current=\${COMP_WORDS[COMP_CWORD]} line
  [[ $current == '=' ]] && current=''
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
      :directories) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
      "$current"*) COMPREPLY+=("$(printf %q "\${line%%$'\\t'*}")") ;;
    esac
  done < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _nodepool_builder nodepool-builder`,

  zsh: `#compdef nodepool-builder
# Completion of nodepool-builder for zsh 5, written by "nodepool-builder completion zsh".
_nodepool-builder() {
  local -a found
  found=("\${(@f)$("\${(Q)words[1]}" complete -- "\${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  case $found[1] in
    :files) compset -P '--*='; _files ;;
    :directories) compset -P '--*='; _files -/ ;;
    ?*)
      found=("\${(@)found//\\\\/\\\\\\\\}")
      found=("\${(@)found//:/\\\\:}")
      found=("\${(@)found//$'\\t'/:}")
      _describe candidate found
      ;;
  esac
}
if [[ $funcstack[1] == _nodepool-builder ]]; then
  _nodepool-builder "$@"
else
  compdef _nodepool-builder nodepool-builder
fi`,

  fish: `# Completion of nodepool-builder for fish 3, written by "nodepool-builder completion fish".
function __nodepool_builder_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l found ($words[1] complete -- $words[2..] "$current" 2>/dev/null)
  switch "$found[1]"
    case :files
      __fish_complete_path "$current"
    case :directories
      __fish_complete_directories "$current"
    case '*'
      printf '%s\\n' $found
  end
end
complete -c nodepool-builder -e
complete -c nodepool-builder -f -a '(__nodepool_builder_complete)'`,
};

/** `completion SHELL`: prints a script that completes command lines. */
export function register(program: Command): void {
  program
    .command('completion')
    .description(
      'Prints a script with which a shell completes commands, options, values and files, and the names of disk images ' +
        'and providers in the configuration file of -c.',
    )
    .addArgument(new Argument('<shell>', 'shell that runs the script').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', INSTALLATION)
    .action((shell: keyof typeof SCRIPTS) => console.log(SCRIPTS[shell]));
}

const INSTALLATION = `
To install it, as root:
  $ nodepool-builder completion bash > /etc/bash_completion.d/nodepool-builder
  $ nodepool-builder completion zsh \\
      > /usr/local/share/zsh/site-functions/_nodepool-builder
  $ nodepool-builder completion fish \\
      > /etc/fish/completions/nodepool-builder.fish

Without Debian's package bash-completion, ~/.bashrc reads the script:
  source /etc/bash_completion.d/nodepool-builder`;
