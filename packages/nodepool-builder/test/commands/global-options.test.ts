import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Command, CommanderError, type Option } from 'commander';
import { completeLongOptions, withCommand } from '../../src/commands/global-options.ts';
import { createProgram } from '../../src/commands/main.ts';

/** Sample values of options. */
const VALUES: Readonly<Record<string, string>> = {
  '--config': '/etc/staging.yaml',
  '--logging-config': '/etc/logging.yaml',
  '--log-level': 'warn',
  '--secure': '/etc/secure.yaml',
  '--pidfile': '/run/builder.pid',
  '--build-workers': '2',
  '--upload-workers': '3',
  '--keep-on-failure': '60',
  '--web': '127.0.0.1:8080',
  '--web-token-file': '/etc/token',
  '--web-trusted-header': 'X-Forwarded-User',
  '--web-trusted-proxy': '192.0.2.1',
  '--web-url': 'https://images.example.org',
};

interface Parsed {
  readonly command: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Parses a command line without running its command. */
async function parse(args: readonly string[]): Promise<Parsed> {
  const program = await createProgram();
  const parsed: Parsed[] = [];
  for (const command of [program, ...program.commands]) {
    command.exitOverride().configureOutput({ writeErr: () => {} });
    command.action(() => void parsed.push({ command: command.name(), options: command.opts() }));
  }
  await program.parseAsync(args, { from: 'user' });
  const [only, ...others] = parsed;
  assert.ok(only !== undefined && others.length === 0);
  return only;
}

/** Returns the command with a value for each required argument and option. */
function complete(command: Command): string[] {
  const values = command.registeredArguments
    .filter(({ required }) => required)
    .map(({ argChoices: [choice = ''] = ['value'] }) => choice);
  const options = command.options
    .filter(({ mandatory }) => mandatory)
    .map(({ long, argChoices = ['value'] }) => `${long}=${argChoices[0]}`);
  return [command.name(), ...values, ...options];
}

function flagOf({ long }: Option): string[] {
  const flag = long ?? '';
  return flag in VALUES ? [`${flag}=${VALUES[flag]}`] : [flag];
}

async function usageError(args: readonly string[]): Promise<string> {
  const error = await parse(args).then(
    ({ command, options }) => assert.fail(`${command} was run with ${JSON.stringify(options)}`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof CommanderError, String(error));
  assert.notEqual(error.exitCode, 0);
  return error.message;
}

const { commands, options } = await createProgram();
const general = options.filter(({ long, hidden }) => long !== '--version' && !hidden);

describe('an option before a command', () => {
  for (const command of commands) {
    for (const option of general) {
      const flags = flagOf(option);
      const own = command.options.find(({ long }) => long === option.long);
      const line = [...flags, ...complete(command)];
      if (own === undefined) {
        it(`the global option in "${line.join(' ')}" is rejected`, async () => {
          assert.match(
            await usageError(line),
            new RegExp(`${option.long}.* is not an option of ${command.name()}`),
          );
        });
      } else {
        it(`the global option in "${line.join(' ')}" has the same effect as after the command`, async () => {
          const before = await parse(line);
          assert.equal(before.command, command.name());
          assert.equal(String(before.options[own.attributeName()]), VALUES[option.long ?? ''] ?? 'true');
          assert.deepEqual(before, await parse([...complete(command), ...flags]));
        });
      }
    }
  }

  it('a global option may be repeated after the command with the same value', async () => {
    const { options: parsed } = await parse(['-c', 'a.yaml', 'validate', '-c', 'a.yaml']);
    assert.equal(parsed.config, 'a.yaml');
    assert.match(
      await usageError(['-c', 'a.yaml', 'validate', '-c', 'b.yaml']),
      /--config.*a\.yaml.*b\.yaml/,
    );
  });

  it('a global option before a misspelt command does not start a daemon', async () => {
    assert.match(await usageError(['-c', 'a.yaml', 'rebuidl', 'debian']), /rebuidl|too many arguments/);
  });

  it('every command but gearmand, init, completion and complete takes -c', () => {
    const without = commands.filter((command) => !command.options.some(({ short }) => short === '-c'));
    assert.deepEqual(
      without.map((command) => command.name()),
      ['gearmand', 'init', 'completion', 'complete'],
    );
  });
});

const sample = new Command()
  .option('-p, --pidfile <file>')
  .option('--build-workers <n>')
  .option('--build-log <file>')
  .option('--version');
sample.command('image-build').option('--provider <name>');

describe('long options', () => {
  const cases: readonly (readonly [given: readonly string[], completed: readonly string[]])[] = [
    [
      ['--pid', 'x'],
      ['--pidfile', 'x'],
    ],
    [['--build-w=2=3'], ['--build-workers=2=3']],
    [['--h'], ['--help']],
    [
      ['--build-workers', '2'],
      ['--build-workers', '2'],
    ],
    [
      ['--build', '2'],
      ['--build', '2'],
    ], // ambiguous
    [['--unknown'], ['--unknown']],
    [
      ['-p', '--pid'],
      ['-p', '--pidfile'],
    ], // argparse takes no value that looks like an option
    [
      ['--', '--pid'],
      ['--', '--pid'],
    ],
    [
      ['--pid', 'x', 'image-build', '--pid'],
      ['--pidfile', 'x', 'image-build', '--pid'],
    ],
  ];
  for (const [given, completed] of cases) {
    it(`the arguments "${given.join(' ')}" are completed to "${completed.join(' ')}"`, () => {
      assert.deepEqual(completeLongOptions(sample, given), completed);
    });
  }
});

it('the option --keep-on-failure without a value means an hour', async () => {
  assert.equal((await parse(['--keep-on-failure'])).options.keepOnFailure, 3600);
  assert.equal((await parse(['--keep-on-failure', '60'])).options.keepOnFailure, 60);
});

describe('the command', () => {
  const cases: readonly (readonly [given: readonly string[], meant: readonly string[]])[] = [
    [[], ['serve']],
    [
      ['-d', '--keep-on-failure'],
      ['serve', '-d', '--keep-on-failure'],
    ],
    [
      ['-c', 'a.yaml', 'plan'],
      ['-c', 'a.yaml', 'plan'],
    ],
    [['-h'], ['-h']],
    [['--no-such'], ['--no-such']],
    [['help'], ['help']],
    [
      ['help', 'plan'],
      ['help', 'plan'],
    ],
    [['help', 'paln'], ['paln']],
  ];
  for (const [given, meant] of cases) {
    it(`the arguments "${given.join(' ')}" mean "${meant.join(' ')}"`, async () => {
      assert.deepEqual(withCommand(await createProgram(), given), meant);
    });
  }
});

it('the help for all commands loads no command, as the command table has their operands', async () => {
  const outline = await createProgram({}, () => false);
  assert.equal(outline.helpInformation(), (await createProgram()).helpInformation());
  assert.deepEqual(
    outline.commands.flatMap((command) => command.options.map(({ long }) => long)),
    [],
  );
});

describe('a misspelt word', () => {
  const cases: readonly (readonly [args: readonly string[], nearest: string, usage: string])[] = [
    [['rebuidl', 'debian'], 'rebuild', 'nodepool-builder [options] [command]'],
    [['-c', 'a.yaml', 'rebuidl'], 'rebuild', 'nodepool-builder [options] [command]'],
    [['--all-in-on2'], '--all-in-one', 'nodepool-builder [options] [command]'],
    [['validate', '--strct'], '--strict', 'nodepool-builder validate [options] [file...]'],
  ];
  for (const [args, nearest, usage] of cases) {
    it(`the error for "${args.join(' ')}" suggests ${nearest} and shows the usage`, async () => {
      let said = '';
      const program = await createProgram();
      for (const command of [program, ...program.commands]) {
        command.configureOutput({ writeErr: (text) => (said += text) });
      }
      await assert.rejects(program.parseAsync([...args], { from: 'user' }), CommanderError);
      assert.match(said, /^error: unknown (?:command|option) /);
      assert.ok(said.includes(`(Did you mean ${nearest}?)\nUsage: ${usage}\n`), said);
    });
  }
});

it('the options --log-level and -l exclude each other, and --log still means --logging-config', async () => {
  assert.match(await usageError(['serve', '-l', 'a.yaml', '--log-level', 'info']), /cannot be used with/);
  assert.match(
    await usageError(['serve', '--log-level', 'all']),
    /Allowed choices are error, warn, info, debug/,
  );
  const program = await createProgram();
  assert.deepEqual(completeLongOptions(program, ['--log', 'a.yaml']), ['--logging-config', 'a.yaml']);
});
