import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DirectoryProvider, IMAGE_PROVIDERS } from '../src/index.ts';

test('directory is there, and takes what it is given', () => {
  const provider = IMAGE_PROVIDERS.directory?.({ name: 'pool', formats: ['raw'], directory: '/srv/images' });
  assert.ok(provider instanceof DirectoryProvider);
  assert.deepEqual([provider.name, provider.formats], ['pool', ['raw']]);
});
