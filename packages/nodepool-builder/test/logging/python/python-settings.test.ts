// Not a unit test: it runs python3.
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import type { LogTarget } from '../../../src/logging/log-settings.ts';
import { routesOf } from '../../../src/logging/logging.ts';
import { parsePythonSettings } from '../../../src/logging/python/python-settings.ts';
import { ConfigurationError, formatDiagnostic } from '../../../src/yaml/diagnostic.ts';

/** Typical configuration: a file for all records, one without debug records, and one for the output of builds. */
const SITE = `[loggers]
keys=root,nodepool,gear,image

[handlers]
keys=console,debug,normal,image

[formatters]
keys=simple

[logger_root]
level=WARNING
handlers=console

[logger_nodepool]
level=DEBUG
handlers=debug,normal
qualname=nodepool

[logger_gear]
level=WARNING
handlers=debug,normal
qualname=gear

[logger_image]
level=INFO
handlers=image
qualname=nodepool.image.build
propagate=0

[handler_console]
level=WARNING
class=StreamHandler
formatter=simple
args=(sys.stdout,)

[handler_debug]
level=DEBUG
class=logging.handlers.TimedRotatingFileHandler
formatter=simple
args=('/var/log/nodepool/builder-debug.log', 'H', 8, 30,)

[handler_normal]
level=INFO
class=logging.handlers.RotatingFileHandler
formatter=simple
args=('/var/log/nodepool/nodepool-builder.log', 'a', 10485760, 5)

[handler_image]
level=INFO
class=handlers.WatchedFileHandler
formatter=simple
args=('/var/log/nodepool/images/image.log',)

[formatter_simple]
format=%(asctime)s %(levelname)s %(name)s: %(message)s
datefmt=
`;

/** Returns the target of a handler with a class and arguments. */
async function targetOf(handler: string): Promise<LogTarget | undefined> {
  const { settings, warnings } = await parsePythonSettings(
    'logging.conf',
    `[loggers]\nkeys=root\n[handlers]\nkeys=h\n[formatters]\nkeys=\n[logger_root]\nhandlers=h\n[handler_h]\n${handler}\n`,
  );
  assert.deepEqual(warnings, []);
  return settings.get('')?.outputs[0]?.target;
}

describe('a typical logging configuration for Python', async () => {
  const { settings, warnings } = await parsePythonSettings('logging.conf', SITE);
  const route = routesOf(settings);
  const filesOf = (...record: Parameters<typeof route>): readonly string[] =>
    [...route(...record)].map(({ target }) => (target.type === 'file' ? target.filename : target.type));

  const [debug, normal, image] = [
    '/var/log/nodepool/builder-debug.log',
    '/var/log/nodepool/nodepool-builder.log',
    '/var/log/nodepool/images/image.log',
  ];
  const routes: readonly (readonly [
    logger: string,
    level: Parameters<typeof route>[1],
    files: readonly string[],
  ])[] = [
    ['nodepool.builder', 'debug', [debug]],
    ['nodepool.builder', 'info', [debug, normal]],
    ['nodepool.builder.BuildWorker', 'error', [debug, normal, 'stdout']],
    ['nodepool.image.build.debian', 'info', [image]],
    ['nodepool.image.build.debian', 'debug', []],
    ['nodepool.image.upload.cloud', 'info', [debug, normal]],
    ['gear.Worker', 'info', []],
    ['gear.Worker', 'warn', [debug, normal, 'stdout']],
    ['other', 'info', []],
    ['other', 'error', ['stdout']],
    ['nodepoold', 'info', []],
  ];
  it('a typical logging configuration for Python is fully supported', () => assert.deepEqual(warnings, []));
  for (const [logger, level, files] of routes) {
    it(`a typical logging configuration sends ${level} of ${logger} to ${files.join(', ') || 'nowhere'}`, () => {
      assert.deepEqual(filesOf(logger, level), files);
    });
  }
});

describe('a handler', () => {
  const handlers: readonly (readonly [handler: string, target: LogTarget | undefined])[] = [
    ['class=StreamHandler\nargs=(sys.stdout,)', { type: 'stdout' }],
    ['class=logging.StreamHandler\nargs=()', { type: 'stderr' }],
    ['class=StreamHandler', { type: 'stderr' }],
    ['class=NullHandler\nargs=()', undefined],
    ["class=FileHandler\nargs=('/l', 'w')", { type: 'file', filename: '/l', truncate: true }],
    ["class=FileHandler\nargs=('l',)", { type: 'file', filename: resolve('l'), truncate: false }],
    ["class=handlers.WatchedFileHandler\nargs=('/l',)", { type: 'file', filename: '/l', watched: true }],
    [
      "class=handlers.RotatingFileHandler\nargs=('/l',)\nkwargs={'maxBytes': 1000, 'backupCount': 3}",
      { type: 'file', filename: '/l', rotation: { by: 'size', maxBytes: 1000, backups: 3 } },
    ],
    ["class=handlers.RotatingFileHandler\nargs=('/l', 'a', 1000)", { type: 'file', filename: '/l' }],
    [
      "class=handlers.TimedRotatingFileHandler\nargs=('/l',)",
      {
        type: 'file',
        filename: '/l',
        rotation: { by: 'time', unit: 'H', interval: 1, backups: 0, utc: false },
      },
    ],
    [
      "class=handlers.TimedRotatingFileHandler\nargs=('/l', 'midnight', 1, 7, None, False, True)",
      {
        type: 'file',
        filename: '/l',
        rotation: { by: 'time', unit: 'MIDNIGHT', interval: 1, backups: 7, utc: true },
      },
    ],
  ];
  for (const [handler, target] of handlers) {
    it(`the logging handler ${handler.replaceAll('\n', ' ')} is supported`, async () =>
      assert.deepEqual(await targetOf(handler), target));
  }
});

describe('an unsupported part', () => {
  it('an unsupported handler class may be named like a property of every object', async () => {
    for (const name of ['constructor', '__proto__', 'toString']) {
      const { settings, warnings } = await parsePythonSettings(
        'logging.conf',
        SITE.replace('class=StreamHandler', `class=${name}`),
      );
      assert.match(warnings[0]?.reason ?? '', new RegExp(`the handler class ${name} is not supported`));
      assert.deepEqual(settings.get('')?.outputs[0]?.target, { type: 'stderr' });
    }
  });

  it('an unsupported part of a logging configuration causes a warning, and the rest applies', async () => {
    const { settings, warnings } = await parsePythonSettings(
      'logging.conf',
      SITE.replace('class=StreamHandler', 'class=handlers.SysLogHandler').replace('%(name)s', '%(funcName)s'),
    );
    assert.deepEqual(
      warnings.map((warning) => formatDiagnostic('logging.conf', warning)),
      [
        'logging.conf:55:1: warning: the format cannot be used: %(funcName)s is not supported; the default format is used instead',
        'logging.conf:32:1: warning: the handler class handlers.SysLogHandler is not supported; its records go to standard error; use one of StreamHandler, NullHandler, FileHandler, handlers.WatchedFileHandler, handlers.RotatingFileHandler, handlers.TimedRotatingFileHandler',
      ],
    );
    assert.deepEqual(settings.get('')?.outputs[0]?.target, { type: 'stderr' });
    assert.equal(settings.get('nodepool')?.outputs.length, 2);
  });

  const errors: readonly (readonly [what: string, text: string, fault: RegExp])[] = [
    [
      'an unknown level',
      SITE.replace('level=WARNING', 'level=LOUD'),
      /conf:11:1: the level "LOUD" is not one of CRITICAL/,
    ],
    [
      'a missing handler',
      SITE.replace('handlers=console', 'handlers=nowhere'),
      /conf:12:1: the handler "nowhere"/,
    ],
    [
      'a missing formatter',
      SITE.replace('formatter=simple', 'formatter=none'),
      /conf:33:1: the formatter "none"/,
    ],
    [
      'a missing section',
      SITE.replace('[handler_debug]', '[handler_bug]'),
      /the section \[handler_debug\] is missing/,
    ],
    ['a logger without a name', SITE.replace('qualname=gear', ''), /conf:19:1: the section lacks "qualname"/],
    ['no root logger', SITE.replace('keys=root,', 'keys='), /conf:1:1: the keys of \[loggers\] lack "root"/],
    [
      'an unknown name',
      SITE.replace('(sys.stdout,)', '(nowhere,)'),
      /conf:34:1: args of StreamHandler: NameError: name 'nowhere' is not defined; correct it, or write YAML/,
    ],
    [
      'an odd stream',
      SITE.replace('(sys.stdout,)', '(sys.stdin,)'),
      /stream must be sys\.stdout or sys\.stderr/,
    ],
    ['an unknown argument', `${SITE}\n[handler_image]\nkwargs={'color': 1}\n`, /it has no argument "color"/],
    ['no file', SITE.replace("('/var/log/nodepool/images/image.log',)", '(5,)'), /must be a file name/],
    ['an odd interval', SITE.replace("'H', 8", "'Y', 8"), /"when" must be one of S, M, H, D, midnight/],
    ['too many arguments', SITE.replace('(sys.stdout,)', '(sys.stdout, 2)'), /takes at most 1 arguments/],
    ['nonsense', SITE.replace('qualname=gear', 'qualname'), /conf:22:1: expected a/],
  ];
  for (const [what, text, fault] of errors) {
    it(`a logging configuration for Python is rejected for ${what}`, async () => {
      await assert.rejects(
        () => parsePythonSettings('logging.conf', text),
        (error) => error instanceof ConfigurationError && fault.test(error.message),
      );
    });
  }
});
