import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Command } from 'commander';
import { completeLongOptions } from '../../src/commands/long-options.ts';

const program = new Command()
  .option('-p, --pidfile <file>')
  .option('--build-workers <n>')
  .option('--build-log <file>')
  .option('--version');
program.command('image-build').option('--provider <name>');

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
    it(`${given.join(' ')} is ${completed.join(' ')}`, () => {
      assert.deepEqual(completeLongOptions(program, given), completed);
    });
  }
});
