/* A client on libgearman. README.md describes its input and output. */
#include <libgearman/gearman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const char *word, const void *data, size_t size) {
  const unsigned char *bytes = data;
  printf("%s ", word);
  for (size_t i = 0; i < size; i++) printf("%02x", bytes[i]);
  printf("\n");
  fflush(stdout);
}

static gearman_return_t created(gearman_task_st *task) {
  printf("created %s\n", gearman_task_job_handle(task));
  fflush(stdout);
  return GEARMAN_SUCCESS;
}

static gearman_return_t status(gearman_task_st *task) {
  printf("status %u %u\n", gearman_task_numerator(task), gearman_task_denominator(task));
  fflush(stdout);
  return GEARMAN_SUCCESS;
}

static gearman_return_t data(gearman_task_st *task) {
  say("data", gearman_task_data(task), gearman_task_data_size(task));
  return GEARMAN_SUCCESS;
}

static gearman_return_t warning(gearman_task_st *task) {
  say("warning", gearman_task_data(task), gearman_task_data_size(task));
  return GEARMAN_SUCCESS;
}

static gearman_return_t complete(gearman_task_st *task) {
  say("complete", gearman_task_data(task), gearman_task_data_size(task));
  return GEARMAN_SUCCESS;
}

static gearman_return_t exception(gearman_task_st *task) {
  say("exception", gearman_task_data(task), gearman_task_data_size(task));
  return GEARMAN_SUCCESS;
}

static gearman_return_t fail(gearman_task_st *task) {
  (void)task;
  printf("fail\n");
  return GEARMAN_SUCCESS;
}

static char *read_all(size_t *size) {
  size_t room = 1 << 16;
  char *payload = malloc(room);
  for (*size = 0;;) {
    size_t count = fread(payload + *size, 1, room - *size, stdin);
    *size += count;
    if (count == 0) return payload;
    if (*size == room) payload = realloc(payload, room *= 2);
  }
}

typedef gearman_task_st *add_task(gearman_client_st *, gearman_task_st *, void *, const char *, const char *,
                                  const void *, size_t, gearman_return_t *);

static const struct {
  const char *mode, *priority;
  add_task *add;
} SUBMIT[] = {
    {"foreground", "high", gearman_client_add_task_high},
    {"foreground", "normal", gearman_client_add_task},
    {"foreground", "low", gearman_client_add_task_low},
    {"background", "high", gearman_client_add_task_high_background},
    {"background", "normal", gearman_client_add_task_background},
    {"background", "low", gearman_client_add_task_low_background},
};

static int query(gearman_client_st *client, const char *handle) {
  bool known, running;
  gearman_return_t result = gearman_client_job_status(client, handle, &known, &running, NULL, NULL);
  if (result == GEARMAN_SUCCESS || gearman_continue(result)) printf("known %d running %d\n", known, running);
  else printf("error %s\n", gearman_client_error(client));
  return 0;
}

static int query_key(gearman_client_st *client, const char *key) {
  gearman_status_t status = gearman_client_unique_status(client, key, strlen(key));
  if (gearman_failed(gearman_status_return(status))) printf("error %s\n", gearman_client_error(client));
  else printf("known %d running %d\n", gearman_status_is_known(status), gearman_status_is_running(status));
  return 0;
}

/* The job waits for the first second of 1970. */
static int schedule(gearman_client_st *client, const char *function) {
  size_t size;
  char *payload = read_all(&size);
  gearman_argument_t argument = gearman_argument_make(NULL, 0, payload, size);
  gearman_task_attr_t at = gearman_task_attr_init_epoch(1, GEARMAN_JOB_PRIORITY_NORMAL);
  gearman_task_st *task = gearman_execute(client, function, strlen(function), NULL, 0, &at, &argument, NULL);
  if (task == NULL) printf("error %s\n", gearman_client_error(client));
  else created(task);
  return 0;
}

static int reduce(gearman_client_st *client, const char *function, const char *reducer) {
  size_t size;
  char *payload = read_all(&size);
  gearman_argument_t argument = gearman_argument_make(NULL, 0, payload, size);
  gearman_task_st *task = gearman_execute_by_partition(client, function, strlen(function), reducer,
                                                       strlen(reducer), NULL, 0, NULL, &argument, NULL);
  if (task == NULL || gearman_failed(gearman_task_return(task))) {
    printf("error %s\n", task ? gearman_task_error(task) : gearman_client_error(client));
  } else {
    gearman_result_st *result = gearman_task_result(task);
    say("complete", gearman_result_value(result), gearman_result_size(result));
  }
  return 0;
}

static int submit(gearman_client_st *client, char **argv) {
  size_t size;
  char *payload = read_all(&size);
  const char *unique = *argv[5] ? argv[5] : NULL;
  for (size_t i = 0; i < sizeof SUBMIT / sizeof *SUBMIT; i++) {
    if (strcmp(SUBMIT[i].mode, argv[2]) != 0 || strcmp(SUBMIT[i].priority, argv[3]) != 0) continue;
    gearman_return_t result;
    SUBMIT[i].add(client, NULL, NULL, argv[4], unique, size ? payload : NULL, size, &result);
    if (gearman_success(result)) result = gearman_client_run_tasks(client);
    if (gearman_failed(result)) printf("error %s\n", gearman_client_error(client));
    return 0;
  }
  return 2;
}

int main(int argc, char **argv) {
  if (argc < 6) return 2;
  gearman_client_st *client = gearman_client_create(NULL);
  gearman_client_add_server(client, "127.0.0.1", (in_port_t)atoi(argv[1]));
  if (strcmp(argv[2], "query") == 0) return query(client, argv[4]);
  if (strcmp(argv[2], "query-key") == 0) return query_key(client, argv[4]);
  if (strcmp(argv[2], "scheduled") == 0) return schedule(client, argv[4]);
  if (strcmp(argv[2], "reduce") == 0) return reduce(client, argv[4], argv[6]);
  gearman_client_add_options(client, GEARMAN_CLIENT_EXCEPTION);
  gearman_client_set_created_fn(client, created);
  gearman_client_set_status_fn(client, status);
  gearman_client_set_data_fn(client, data);
  gearman_client_set_warning_fn(client, warning);
  gearman_client_set_complete_fn(client, complete);
  gearman_client_set_exception_fn(client, exception);
  gearman_client_set_fail_fn(client, fail);
  return submit(client, argv);
}
