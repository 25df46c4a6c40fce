# Bradley-Terry reference numbers for the tests, from the files in data/ alone.
#
# Usage, from the top of the repository:
#   Rscript tests/reference/btl_reference.R > tests/reference/btl.json

suppressPackageStartupMessages(library("BradleyTerry2"))

gammas <- c(0, 0.25, 1, 4)

# Rows with an answer: players i and j (numbers), y = 1, 1/2 or 0, respondent.
read_survey <- function(file, items) {
  rows <- read.csv(file.path("data", file), na.strings = "")
  answered <- rows[!is.na(rows$outcome), ]
  list(
    items = items,
    respondents = length(unique(rows$respondent)),
    missing = sum(is.na(rows$outcome)),
    i = match(answered$item1, items),
    j = match(answered$item2, items),
    y = (answered$outcome + 1) / 2,
    respondent = answered$respondent
  )
}

reverse_pair <- function(survey, item1, item2) {
  pair <- survey$items[survey$i] == item1 & survey$items[survey$j] == item2
  survey$y[pair] <- 1 - survey$y[pair]
  survey
}

# One row per comparison: +1 for the first item, -1 for the second.
design <- function(survey) {
  x <- matrix(0, length(survey$y), length(survey$items))
  x[cbind(seq_along(survey$y), survey$i)] <- 1
  x[cbind(seq_along(survey$y), survey$j)] <- -1
  x
}

loglik <- function(theta, x, y) {
  eta <- drop(x %*% theta)
  sum(y * plogis(eta, log.p = TRUE) + (1 - y) * plogis(-eta, log.p = TRUE))
}

information <- function(theta, x) {
  p <- plogis(drop(x %*% theta))
  crossprod(x, x * (p * (1 - p)))
}

newton <- function(x, y, gamma) {
  m <- ncol(x)
  theta <- numeric(m)
  for (iteration in 1:50) {
    gradient <- drop(crossprod(x, y - plogis(drop(x %*% theta)))) - gamma * theta
    # The gradient sums to zero, so 1/m leaves the step alone and only makes
    # the matrix invertible at gamma = 0.
    step <- solve(information(theta, x) + gamma * diag(m) + 1 / m, gradient)
    theta <- theta + step
    if (max(abs(step)) < 1e-14) break
  }
  stopifnot(max(abs(gradient)) < 1e-9)
  theta - mean(theta)
}

# The same fit by glm: the first item is the reference category.
fit_glm <- function(x, y) {
  # Half wins are meant, so glm's remark on non-integer successes is not wanted.
  fit <- suppressWarnings(glm(y ~ 0 + x[, -1], family = binomial, epsilon = 1e-15, maxit = 100))
  centring <- diag(ncol(x)) - 1 / ncol(x)
  list(
    params = drop(centring[, -1] %*% coef(fit)),
    covariance = centring[, -1] %*% vcov(fit) %*% t(centring[, -1])
  )
}

fit_btm <- function(survey) {
  players <- data.frame(
    item1 = factor(survey$items[survey$i], survey$items),
    item2 = factor(survey$items[survey$j], survey$items)
  )
  won <- aggregate(cbind(win1 = survey$y, win2 = 1 - survey$y), players, sum)
  fit <- suppressWarnings(BTm(
    cbind(win1, win2), item1, item2,
    data = won, refcat = survey$items[1], epsilon = 1e-15, maxit = 100
  ))
  abilities <- BTabilities(fit)[survey$items, "ability"]
  unname(abilities - mean(abilities))
}

reference <- function(survey) {
  items <- survey$items
  x <- design(survey)
  y <- survey$y
  fits <- lapply(gammas, function(gamma) newton(x, y, gamma))
  by_glm <- fit_glm(x, y)
  params <- by_glm$params

  # Inverting on the centred contrasts gives the pseudo-inverse.
  m <- length(items)
  model <- solve(information(params, x) + 1 / m) - 1 / m
  scores <- rowsum(x * (y - plogis(drop(x %*% params))), survey$respondent)
  cluster <- model %*% crossprod(scores) %*% model

  agreement <- c(
    glm_newton_params = max(abs(params - fits[[1]])),
    glm_btm_params = max(abs(params - fit_btm(survey))),
    glm_newton_covariance = max(abs(by_glm$covariance - model))
  )
  stopifnot(agreement < 1e-9)

  named <- function(values) as.list(setNames(values, items))
  fits[[1]] <- params
  list(
    items = items,
    respondents = survey$respondents,
    comparisons = length(y),
    ties = sum(y == 0.5),
    missing = survey$missing,
    params = setNames(lapply(fits, named), gammas),
    loglik = as.list(setNames(vapply(fits, loglik, 0, x = x, y = y), gammas)),
    covariance = list(model = model, cluster = cluster),
    bse = list(model = named(sqrt(diag(model))), cluster = named(sqrt(diag(cluster)))),
    agreement = as.list(agreement)
  )
}

university <- read_survey(
  "university.csv",
  c("London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm")
)
immigration <- read_survey(
  "immigration.csv",
  c("crimRate", "position", "socBurd", "culture")
)
versions <- lapply(
  c(BradleyTerry2 = "BradleyTerry2", jsonlite = "jsonlite"),
  function(package) as.character(packageVersion(package))
)

cat(jsonlite::toJSON(
  list(
    meta = list(
      made_by = "tests/reference/btl_reference.R",
      date = as.character(Sys.Date()),
      R = as.character(getRversion()),
      packages = versions,
      model = "P(i preferred to j) = 1 / (1 + exp(-(params[i] - params[j])))",
      data = "a tie is half a win to each item; missing answers are dropped",
      params = paste(
        "by gamma: the centred minimiser of -loglik + gamma/2 * sum(params^2), with loglik",
        "the sum over comparisons in natural logarithms; gamma 0 by glm, the others by Newton"
      ),
      loglik = "by gamma: at params, without the penalty",
      covariance = paste(
        "of the centred params at gamma 0, rows and columns as items; model: pseudo-inverse of",
        "the Fisher information, comparisons independent; cluster: sandwich with respondents as",
        "clusters, no small-sample factor"
      ),
      bse = "square roots of the diagonals of covariance",
      agreement = "largest absolute difference at gamma 0 between glm and Newton, glm and BTm",
      university_1998 = "university with every answer to Barcelona:Stockholm reversed"
    ),
    university = reference(university),
    university_1998 = reference(reverse_pair(university, "Barcelona", "Stockholm")),
    immigration = reference(immigration)
  ),
  auto_unbox = TRUE, digits = NA, pretty = TRUE
), "\n", sep = "")
