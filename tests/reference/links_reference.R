# Reference numbers for other links than the logit, by glm, from the files in data/ alone.
#
# Usage, from the top of the repository:
#   Rscript tests/reference/links_reference.R > tests/reference/links.json

# Rows with an answer: players i and j (numbers), y = 1, 1/2 or 0.
read_survey <- function(file, items) {
  rows <- read.csv(file.path("data", file), na.strings = "")
  answered <- rows[!is.na(rows$outcome), ]
  list(
    items = items,
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

# The hyperbolic secant law with density sech(pi t / 2) / 2, as glm wants a link.
sech <- structure(
  list(
    linkfun = function(mu) log(tan(pi * mu / 2)) * 2 / pi,
    linkinv = function(eta) 2 / pi * atan(exp(pi * eta / 2)),
    mu.eta = function(eta) 1 / (2 * cosh(pi * eta / 2)),
    valideta = function(eta) TRUE,
    name = "sech"
  ),
  class = "link-glm"
)

reference <- function(survey, link) {
  m <- length(survey$items)
  x <- matrix(0, length(survey$y), m)
  x[cbind(seq_along(survey$y), survey$i)] <- 1
  x[cbind(seq_along(survey$y), survey$j)] <- -1
  # Half wins are meant, so glm's remark on non-integer successes is not wanted.
  fit <- suppressWarnings(glm(
    survey$y ~ 0 + x[, -1], family = binomial(link), epsilon = 1e-15, maxit = 200
  ))
  centring <- (diag(m) - 1 / m)[, -1]
  params <- drop(centring %*% coef(fit))
  # Scores by answer, weighted as in the likelihood, then summed by respondent.
  eta <- drop(x %*% params)
  family <- binomial(link)
  mu <- family$linkinv(eta)
  scores <- x * (family$mu.eta(eta) / (mu * (1 - mu)) * (survey$y - mu))
  model <- centring %*% vcov(fit) %*% t(centring)
  cluster <- model %*% crossprod(rowsum(scores, survey$respondent)) %*% model
  named <- function(values) as.list(setNames(values, survey$items))
  list(
    params = named(params),
    bse = list(model = named(sqrt(diag(model))), cluster = named(sqrt(diag(cluster)))),
    loglik = sum(survey$y * log(mu) + (1 - survey$y) * log(1 - mu))
  )
}

university <- read_survey(
  "university.csv",
  c("London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm")
)
surveys <- list(
  university = university,
  university_1998 = reverse_pair(university, "Barcelona", "Stockholm"),
  immigration = read_survey(
    "immigration.csv",
    c("crimRate", "position", "socBurd", "culture")
  )
)

cat(jsonlite::toJSON(
  list(
    meta = list(
      made_by = "tests/reference/links_reference.R",
      date = as.character(Sys.Date()),
      R = as.character(getRversion()),
      packages = list(jsonlite = as.character(packageVersion("jsonlite"))),
      model = "P(i preferred to j) = F(params[i] - params[j])",
      links = "probit: F normal; sech: F'(t) = sech(pi t / 2) / 2",
      data = "a tie is half a win to each item; missing answers are dropped",
      params = "centred maximum likelihood by glm, without a penalty",
      bse = paste(
        "of the centred params; model: vcov of glm (expected information), comparisons",
        "independent; cluster: sandwich with respondents as clusters, no small-sample factor"
      ),
      loglik = "in natural logarithms, at params"
    ),
    probit = lapply(surveys, reference, link = "probit"),
    sech = lapply(surveys, reference, link = sech)
  ),
  auto_unbox = TRUE, digits = NA, pretty = TRUE
), "\n", sep = "")
