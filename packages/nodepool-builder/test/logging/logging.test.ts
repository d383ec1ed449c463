// Not a unit test: it runs python3.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import type { ReadLogSettings } from '../../src/logging/log-settings.ts';
import { openLogging } from '../../src/logging/logging.ts';
import { readLogSettings } from '../../src/logging/read-log-settings.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

interface Place {
  readonly read: (text: string) => Promise<ReadLogSettings>;
  readonly lines: (name: string) => string[];
  readonly directory: string;
}

function place(t: TestContext): Place {
  const directory = temporaryDirectory(t);
  return {
    directory,
    read: async (text) => {
      const path = join(directory, 'logging');
      writeFileSync(path, text);
      return await readLogSettings(path);
    },
    lines: (name) => readFileSync(join(directory, name), 'utf8').trimEnd().split('\n'),
  };
}

describe('the log', () => {
  it('the log has nodepool’s layout and the level of each logger', async (t) => {
    const { TZ } = process.env;
    undoAfter(t, () => {
      if (TZ === undefined) delete process.env.TZ;
      else process.env.TZ = TZ;
    });
    process.env.TZ = 'Asia/Kolkata'; // not UTC, and without daylight saving time, which repeats an hour
    const { read, lines } = place(t);
    const { settings } = await read(`
level: info
loggers: {nodepool.image: warn, nodepool.image.upload: debug, gear: silent}
outputs: [{type: file, filename: builder.log}]
`);
    const logging = openLogging(settings);
    const now = new Date();
    logging.logger('nodepool.builder').debug('too quiet');
    logging.logger('nodepool.builder').info('Starting');
    logging.logger('nodepool.image.build.debian').info('too quiet');
    logging.logger('nodepool.image.upload.pool').debug('Copying');
    logging.logger('gear.Client').error('silent');
    logging.logger('nodepool.builder').warn('');
    logging.logger('nodepool.builder').error('Failed', new Error('no space'));
    await logging.close();
    const [starting = '', copying, empty, failed, trace] = lines('builder.log');
    assert.match(starting, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO nodepool\.builder: Starting$/);
    const logged = new Date(starting.slice(0, 23).replace(',', '.')); // local time, because there is no zone
    assert.ok(Math.abs(logged.getTime() - now.getTime()) < 60_000, starting);
    assert.match(copying ?? '', / DEBUG nodepool\.image\.upload\.pool: Copying$/);
    assert.match(empty ?? '', / WARNING nodepool\.builder: $/);
    assert.match(failed ?? '', / ERROR nodepool\.builder: Failed/);
    assert.match(trace ?? '', /Error: no space/);
  });

  it('the log has one line for a message with line breaks, and no stack for a system error', async (t) => {
    const { read, lines } = place(t);
    const { settings } = await read('outputs: [{type: file, filename: builder.log}]\n');
    const logging = openLogging(settings);
    logging.logger('nodepool.builder').warn('write EPROTO SSL routines:a.c:77:\n; retry\r\n  in 1 s\n');
    const missing = Object.assign(new Error("ENOENT: open 'a\nb'"), { code: 'ENOENT', syscall: 'open' });
    logging.logger('nodepool.builder').error('Failed', missing);
    await logging.close();
    const [first = '', second = '', ...more] = lines('builder.log');
    assert.match(first, /WARNING nodepool\.builder: write EPROTO SSL routines:a\.c:77: ; retry in 1 s$/);
    assert.match(second, /ERROR nodepool\.builder: Failed.*ENOENT: open 'a b'$/);
    assert.deepEqual(more, []);
  });

  it('the log has one JSON object per line in format json', async (t) => {
    const { read, lines } = place(t);
    const { settings } = await read('outputs: [{type: file, filename: json.log, format: json}]\n');
    const logging = openLogging(settings);
    logging.logger('nodepool.builder').info('Starting', { images: 2 });
    await logging.close();
    const { timestamp, ...record } = JSON.parse(lines('json.log')[0] ?? '');
    assert.equal(new Date(timestamp).toISOString(), timestamp);
    assert.deepEqual(record, { level: 'info', logger: 'nodepool.builder', message: 'Starting', images: 2 });
  });

  for (const outputFormat of ['text', 'json']) {
    it(`the log contains no control characters from a message, error or data in format ${outputFormat}`, async (t) => {
      const { read, lines } = place(t);
      const { settings } = await read(`outputs: [{type: file, filename: a.log, format: ${outputFormat}}]\n`);
      const logging = openLogging(settings);
      const hostile = 'a\x1b]0;title\x07b\x9b2Jc\rd\u202ee\u2028f\x7f';
      logging.logger('nodepool.builder').info(hostile, { [hostile]: hostile });
      logging.logger('nodepool.builder').error('Failed', new Error(hostile));
      await logging.close();
      const text = lines('a.log').join('\n');
      assert.doesNotMatch(text, /[^\P{Cc}\n]|[\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
      if (outputFormat === 'json') assert.equal(JSON.parse(lines('a.log')[0] ?? '').message, hostile);
      else assert.match(text, / INFO nodepool\.builder: a\\u001b\]0;title\\u0007b\\u009b2Jc\\u000dd\\u202ee/);
    });
  }

  it('the log applies a logging configuration for Python', async (t) => {
    const { read, lines, directory } = place(t);
    const { settings, warnings } = await read(`# as sites have it
[loggers]
keys=root,image
[handlers]
keys=all,image
[formatters]
keys=short
[logger_root]
level=INFO
handlers=all
[logger_image]
level=INFO
handlers=image
qualname=nodepool.image.build
propagate=0
[handler_all]
class=FileHandler
level=INFO
formatter=short
args=('${directory}/all.log', 'a')
[handler_image]
class=handlers.RotatingFileHandler
level=NOTSET
formatter=short
args=('${directory}/image.log', 'a', 1000000, 2)
[formatter_short]
format=%(levelname)s %(name)s: %(message)s
`);
    assert.deepEqual(warnings, []);
    const logging = openLogging(settings);
    logging.logger('nodepool.builder').info('Starting');
    logging.logger('nodepool.builder').debug('too quiet');
    logging.logger('nodepool.image.build.debian').info('Building');
    await logging.close();
    assert.deepEqual(lines('all.log'), ['INFO nodepool.builder: Starting']);
    assert.deepEqual(lines('image.log'), ['INFO nodepool.image.build.debian: Building']);
  });

  it('the log starts a new file when the old one is large', async (t) => {
    const { read, lines } = place(t);
    const { settings } = await read(
      'outputs: [{type: file, filename: b.log, max-size: 100, max-files: 2}]\n',
    );
    const logging = openLogging(settings);
    for (const message of ['first', 'second', 'third']) logging.logger('nodepool.builder').info(message);
    await logging.close();
    assert.match(lines('b.log').join(), /third$/);
    assert.match(lines('b.log.1').join(), /second$/);
  });
});

describe('the file of -l', () => {
  const faults: readonly (readonly [text: string, fault: RegExp])[] = [
    ['level: loud\n', /logging:1:1: level is "loud"; use one of error, warn, info, debug/],
    ['outputs: [{type: file}]\n', /logging:1:11: outputs\[0\] lacks the key "filename"/],
    ['level: [\n', /logging:2:1: /],
    ['[loggers]\nkeys=root\n', /logging:1:1: the section \[formatters\] is missing/],
  ];
  for (const [text, fault] of faults) {
    it(`the logging configuration ${JSON.stringify(text)} is rejected with the file name`, async (t) => {
      await assert.rejects(
        place(t).read(text),
        (error) => error instanceof ConfigurationError && fault.test(error.message),
      );
    });
  }

  it('the error for a missing logging configuration names the file', async (t) => {
    const missing = join(temporaryDirectory(t), 'missing');
    await assert.rejects(readLogSettings(missing), /missing:1:1: .*ENOENT.*correct -l FILE/);
  });

  it('a logging configuration may have unknown keys', async (t) => {
    const { warnings } = await place(t).read('level: info\nloggres: {}\n');
    assert.deepEqual(
      warnings.map((warning) => formatDiagnostic('logging', warning)),
      [
        'logging:2:1: warning: the file has the unknown key "loggres"; it is ignored; did you mean "loggers"?',
      ],
    );
  });

  it('a logging configuration is rejected if its log file cannot be written', async (t) => {
    const { read, directory } = place(t);
    const { settings } = await read('outputs: [{type: file, filename: none/b.log}]\n');
    assert.throws(() => openLogging(settings), {
      name: 'ConfigurationError',
      message: new RegExp(
        `${directory}/none/b\\.log:1:1: cannot open the log file: ENOENT.*create its directory`,
      ),
    });
  });
});
