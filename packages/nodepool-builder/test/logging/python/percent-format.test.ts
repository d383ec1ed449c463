import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatError, percentFormat } from '../../../src/logging/python/percent-format.ts';
import type { LogRecord } from '../../../src/logging/record-format.ts';

const RECORD: LogRecord = {
  time: new Date(2016, 4, 1, 4, 2, 11, 7),
  level: 'warn',
  logger: 'nodepool.builder',
  message: '100% done',
  meta: {},
};

describe("a format of Python's logging", () => {
  const formats: readonly (readonly [format: string, datefmt: string, line: string])[] = [
    [
      '%(asctime)s %(levelname)s %(name)s: %(message)s',
      '',
      '2016-05-01 04:02:11,007 WARNING nodepool.builder: 100% done',
    ],
    ['%(asctime)s', '%d/%b/%Y:%H:%M:%S %%', '01/May/2016:04:02:11 %'],
    ['%(asctime)s', '%a %A %B %y %j %I%p %F %T', 'Sun Sunday May 16 122 04AM 2016-05-01 04:02:11'],
    ['[%(levelname)-8s] [%(levelno)5d] %(name).8s', '', '[WARNING ] [   30] nodepool'],
    [
      '%(msecs)03d %(process)d %(threadName)s %(processName)s 5%%',
      '',
      `007 ${process.pid} MainThread MainProcess 5%`,
    ],
    ['%(created).3f', '', (RECORD.time.getTime() / 1000).toFixed(3)],
  ];
  for (const [format, datefmt, line] of formats) {
    it(`the logging format ${format} ${datefmt} of Python is supported`, () => {
      assert.equal(formatError(format, datefmt), undefined);
      assert.equal(percentFormat(format, datefmt)(RECORD), line);
    });
  }

  it('Python’s logging format appends an error’s stack trace', () => {
    assert.equal(
      percentFormat('%(message)s', '')({ ...RECORD, stack: 'Error: x\n    at y' }),
      '100% done\nError: x\n    at y',
    );
  });

  const faults: readonly (readonly [format: string, datefmt: string, reason: string])[] = [
    ['%(pathname)s: %(message)s', '', '%(pathname)s is not supported'],
    ['%(message)r', '', '%(message)r is not supported'],
    ['%(message)s 5%', '', 'a "%" does not start a directive'],
    ['%(asctime)s', '%Q', '%Q in datefmt is not supported'],
  ];
  for (const [format, datefmt, reason] of faults) {
    it(`the logging format ${format} ${datefmt} of Python is not supported`, () =>
      assert.equal(formatError(format, datefmt), reason));
  }
});
