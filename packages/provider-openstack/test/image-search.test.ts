import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseImageFilter } from '@nodepool-builder/image-builder';
import { filterEntry } from '@nodepool-builder/image-builder/internal';
import { imageQueries } from '../src/image-search.ts';

/** Returns the query strings for a filter. */
function queries(filter: string, withRefused = false, projectId: string | undefined = 'us'): string[] {
  const entries = filter.split(' ').filter(Boolean).map(filterEntry);
  const found = imageQueries(parseImageFilter(entries), { projectId, withRefused });
  return found.map((query) => new URLSearchParams({ ...query }).toString());
}

test('an image filter’s key with one value is sent to Glance, as is the owner', () => {
  assert.deepEqual(queries(''), ['owner=us&status=active']);
  assert.deepEqual(queries('name=debian image-name=deb tag=ci architecture=arm64 property:os=bsd'), [
    'os=bsd&architecture=arm64&tag=ci&name=debian&nodepool_image_name=deb&owner=us&status=active',
  ]);
  assert.deepEqual(queries('owner=them owner=self'), ['owner=them&status=active', 'owner=us&status=active']);
  assert.deepEqual(queries('visibility=public visibility=community'), [
    'owner=us&visibility=public&status=active',
    'owner=us&visibility=community&status=active',
  ]);
});

test('an image in a cloud without Keystone has no owner in the query', () => {
  assert.deepEqual(imageQueries({}, { projectId: undefined, withRefused: false }), [{ status: 'active' }]);
});

test('filter conditions that Glance does not support or would misread are not in the query', () => {
  for (const filter of [
    'name=debian-* tag=a tag=b',
    'name=debian name=deb-*',
    'name=in:debian',
    'property:os=a property:os=b',
    'property:limit=1 property:sort=x property:disk_format=raw property:size=1',
    'not-older-than=1d',
  ]) {
    assert.deepEqual(queries(filter), ['owner=us&status=active'], filter);
  }
});

test('rejected images are queried only by name, including hidden ones', () => {
  assert.deepEqual(queries('name=debian tag=ci owner=them', true), [
    'tag=ci&name=debian&owner=them&status=active',
    'name=debian',
    'name=debian&os_hidden=true',
  ]);
});
