import type { createProgram } from '../../packages/nodepool-builder/src/commands/main.ts';
import type { EXIT_CODES } from '../../packages/nodepool-builder/src/terms/exit-codes.ts';

type Command = Awaited<ReturnType<typeof createProgram>>;

/** Generates the manual page nodepool-builder(1), in man(7) macros, from the definitions of the commands. */
export function manPage(program: Command, exitCodes: typeof EXIT_CODES): string {
  const help = program.createHelp();
  const commands = help.visibleCommands(program).filter((command) => command.name() !== 'help');
  const groups = Map.groupBy(commands, (command) => command.helpGroup().replace(/:$/, ''));
  return `${[
    '.\\" Written by npm run docs.',
    '.TH NODEPOOL\\-BUILDER 1 "" nodepool\\-builder "User Commands"',
    '.SH NAME',
    'nodepool\\-builder \\- builds VM images, stores them, and uploads them to clouds',
    '.SH SYNOPSIS',
    '.nf',
    '\\fBnodepool\\-builder\\fR [\\fIoptions\\fR]',
    '\\fBnodepool\\-builder\\fR \\fIcommand\\fR [\\fIoptions\\fR]',
    '.fi',
    '.SH DESCRIPTION',
    prose(program.description()),
    'Without a command, it runs \\fBserve\\fR and accepts the same options.',
    'An option may stand before or after a command.',
    ...[...groups].flatMap(([heading, members]) => [
      `.SH ${quoted(heading.toUpperCase())}`,
      ...members.flatMap((command) => commandSection(command)),
    ]),
    '.SH "EXIT STATUS"',
    ...Object.values(exitCodes).flatMap(({ code, meaning }) => [
      '.TP',
      `.B ${code}`,
      prose(sentence(meaning)),
    ]),
    '.SH ENVIRONMENT',
    '.TP',
    '.B NO_COLOR',
    'If it is set, messages, tables and help have no colours.',
    '.TP',
    '.B FORCE_COLOR',
    'With the value 1, output to a pipe also has colours.',
    '.SH FILES',
    '.TP',
    '.I /etc/nodepool/nodepool.yaml',
    'Configuration file, unless \\fB\\-c\\fR names another one.',
    '.SH "SEE ALSO"',
    '.BR disk\\-image\\-create (1),',
    '.BR gearmand (8),',
    '.BR qemu\\-img (1)',
  ].join('\n')}\n`;
}

function commandSection(command: Command): readonly string[] {
  const help = command.createHelp();
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
  return [
    `.SS ${quoted(`${command.name()} ${command.usage()}`)}`,
    prose(command.description()),
    ...help.visibleArguments(command).flatMap((operand) => operandEntry(operand)),
    ...options.flatMap((option) => [
      '.TP',
      `.B ${literal(option.flags)}`,
      prose(sentence(help.optionDescription(option))),
    ]),
    ...notesOf(command),
  ];
}

function operandEntry(operand: Command['registeredArguments'][number]): readonly string[] {
  return ['.TP', `.I ${literal(operand.name())}`, prose(sentence(operand.description))];
}

/** Returns the text after the options in a command's help, line by line. */
function notesOf(command: Command): readonly string[] {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part), getOutHasColors: () => false });
  command.outputHelp();
  const notes = text.slice(command.helpInformation().length).trim();
  return notes === '' ? [] : ['.PP', '.nf', ...notes.split('\n').map(literal), '.fi'];
}

/** Returns text that groff fills, with its hyphens unchanged. */
function prose(text: string): string {
  return escaped(
    text.replaceAll(/(?<!\w)--?(?=\w)/g, (dashes) => dashes.replaceAll('-', '\u0000')),
  ).replaceAll('\u0000', '\\-');
}

/** Returns text in which each hyphen is a minus sign, as typed on a keyboard. */
function literal(text: string): string {
  return escaped(text).replaceAll('-', '\\-');
}

function quoted(text: string): string {
  return `"${literal(text).replaceAll('"', '\\(dq')}"`;
}

/** Escapes a line that would begin with a request. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\e').replace(/^[.']/, '\\&$&');
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.)]$/.test(text) ? '' : '.'}`;
}
