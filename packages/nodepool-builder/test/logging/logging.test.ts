import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readLogSettings } from '../../src/logging/log-settings.ts';
import { openLogging } from '../../src/logging/logging.ts';

let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'logging-'));
});
after(() => rm(directory, { recursive: true }));

async function settings(text: string): ReturnType<typeof readLogSettings> {
  const path = join(directory, 'logging.yaml');
  await writeFile(path, text);
  return await readLogSettings(path);
}

describe('the log', () => {
  it('has the layout that nodepool operators know, and the levels that each logger was given', async () => {
    const logging = openLogging(
      await settings(`
level: info
loggers: {nodepool.image: warn, nodepool.image.upload: debug, gear: silent}
outputs: [{type: file, filename: builder.log}]
`),
    );
    logging.logger('nodepool.builder').debug('too quiet');
    logging.logger('nodepool.builder').info('Starting');
    logging.logger('nodepool.image.build.debian').info('too quiet');
    logging.logger('nodepool.image.upload.pool').debug('Copying');
    logging.logger('gear.Client').error('silent');
    logging.logger('nodepool.builder').error('Failed', new Error('no space'));
    await logging.close();
    const lines = (await readFile(join(directory, 'builder.log'), 'utf8')).trimEnd().split('\n');
    assert.match(lines[0] ?? '', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO nodepool\.builder: Starting$/);
    assert.match(lines[1] ?? '', / DEBUG nodepool\.image\.upload\.pool: Copying$/);
    assert.match(lines[2] ?? '', / ERROR nodepool\.builder: Failed/);
    assert.match(lines[3] ?? '', /Error: no space/);
  });

  it('has an object a line where machines read it', async () => {
    const logging = openLogging(
      await settings('outputs: [{type: file, filename: json.log, format: json}]\n'),
    );
    logging.logger('nodepool.builder').info('Starting', { images: 2 });
    await logging.close();
    const { level, logger, message, images } = JSON.parse(
      await readFile(join(directory, 'json.log'), 'utf8'),
    );
    assert.deepEqual(
      { level, logger, message, images },
      {
        level: 'info',
        logger: 'nodepool.builder',
        message: 'Starting',
        images: 2,
      },
    );
  });

  it('refuses settings that it does not know, and Python ones, by name', async () => {
    await assert.rejects(settings('level: loud\n'), /logging\.yaml: \/level must be equal to one of/);
    await assert.rejects(settings('[loggers]\nkeys=root\n'), /Python logging configuration.*YAML/);
  });
});
