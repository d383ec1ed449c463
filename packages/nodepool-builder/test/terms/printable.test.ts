import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runInProcess } from '../../../../test/fixtures/command-in-process.ts';
import { printable } from '../../src/terms/printable.ts';

describe('printable', () => {
  it('printable text replaces control characters, and keeps tabs, lines and other text', () => {
    assert.equal(
      printable('a\tb\nc\x1b[2J\x07\r\x9b\x7f\u202eß'),
      'a\tb\nc\\u001b[2J\\u0007\\u000d\\u009b\\u007f\\u202eß',
    );
  });

  it('printable text keeps colours for a terminal, and no other control sequences', () => {
    const text = '\x1b[31mred\x1b[39m\x1b[2J\x1b]0;title\x07\x1b[?1049h\x1b';
    const kept = '\x1b[31mred\x1b[39m\\u001b[2J\\u001b]0;title\\u0007\\u001b[?1049h\\u001b';
    assert.equal(printable(text, true), kept);
  });

  it('printable JSON stays valid, with the same values', () => {
    const value = { 'a\x9b': ['\x1b', '\u2028', '\u202e', '\x7f'] };
    assert.deepEqual(JSON.parse(printable(JSON.stringify(value, null, 2))), value);
  });
});

describe('a command', () => {
  it('a command prints no control character from an error', async () => {
    const { code, stderr } = await runInProcess('validate', 'a\x1b]0;title\x07\u202e.yaml');
    assert.equal(code, 3);
    assert.match(stderr, /a\\u001b\]0;title\\u0007\\u202e\.yaml/);
    assert.doesNotMatch(stderr, /[^\P{Cc}\n]|\p{Bidi_Control}/u);
  });

  it('a command prints each error as one line, whatever line breaks a name has', async () => {
    const name = 'no\nsuch\r\n  file';
    for (const args of [
      ['validate', `${name}.yaml`],
      ['validate', '-c', `${name}.yaml`],
      ['build', 'docs', '-c', `${name}.yaml`],
      ['build', name, '--output', '/proc/none'],
      ['upload', `${name}.raw`, '--provider', 'directory:/tmp', '--name', 'a'],
      ['upload', '/proc/self/exe', '--format', 'raw', '--provider', `directory:${name}`, '--name', 'a'],
      ['convert', `${name}.raw`, '--format', 'qcow2'],
      ['latest', '--provider', `directory:/tmp/${name}`],
      ['image-list', '-c', `${name}.yaml`],
      ['serve', '-d', '-c', `${name}.yaml`],
      ['gearmand', '-p', '0', '--tls-cert', name, '--tls-key', name],
    ]) {
      const { stderr } = await runInProcess(...args);
      assert.match(stderr, /^[^\n]+\n$/, args.join(' '));
    }
  });

  it('a command leaves the console unchanged', async () => {
    const { log, error } = console;
    await runInProcess('validate', 'missing.yaml');
    assert.deepEqual([console.log, console.error], [log, error]);
  });
});
